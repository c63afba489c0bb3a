#include "net/certificates.h"

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "net/names.h"
#include "net/openssl.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <openssl/core_names.h>
#include <openssl/pem.h>
#include <openssl/rand.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <string_view>
#include <utility>

namespace sotto::net {
namespace {

constexpr const char* kCurve = "P-256";
constexpr std::string_view kCurveInFiles = "prime256v1";
constexpr std::string_view kAuthoritysCertificate = "the authority's certificate";
constexpr size_t kLongestPem = 1 << 16;
constexpr int kMostDays = 36500;
constexpr int64_t kSecondsPerDay = 86400;
constexpr int64_t kClockTolerance = 3600;

using ExtensionTexts = std::vector<std::pair<int, std::string>>;

// ---- to and from text

// OpenSSL would ask for a passphrase in the terminal.
int no_passphrase(char*, int, int, void*) {
  return -1;
}

Bio reader_of(const std::string& text) {
  return must(Bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size()))));
}

template <typename Write>
std::string text_of(Write write) {
  const Bio bio = must(Bio(BIO_new(BIO_s_mem())));
  must(write(bio.get()) == 1);
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &data);
  return {data, static_cast<size_t>(size)};
}

std::string to_pem(EVP_PKEY* key) {
  return text_of([&](BIO* bio) { return PEM_write_bio_PrivateKey(bio, key, nullptr, nullptr, 0, nullptr, nullptr); });
}

std::string to_pem(X509* certificate) {
  return text_of([&](BIO* bio) { return PEM_write_bio_X509(bio, certificate); });
}

// `what` is the beginning of a sentence about it.
Certificate read_certificate(const std::string& pem, std::string_view what = "this") {
  if (pem.size() > kLongestPem) fail_user("{} is no certificate: more than {} bytes", what, kLongestPem);
  const Bio bio = reader_of(pem);
  Certificate certificate(PEM_read_bio_X509(bio.get(), nullptr, no_passphrase, nullptr));
  if (!certificate) fail_user("{} is no certificate (PEM text that begins with BEGIN CERTIFICATE)", what);
  const Certificate another(PEM_read_bio_X509(bio.get(), nullptr, no_passphrase, nullptr));
  if (another) fail_user("{} is more than one certificate; give one alone", what);
  return certificate;
}

bool is_our_kind(EVP_PKEY* key) {
  if (key == nullptr || EVP_PKEY_get_base_id(key) != EVP_PKEY_EC) return false;
  std::array<char, 64> curve{};
  size_t size = 0;
  int spelled_out = 0;
  return EVP_PKEY_get_group_name(key, curve.data(), curve.size(), &size) == 1 &&
         std::string_view(curve.data(), size) == kCurveInFiles &&
         (EVP_PKEY_get_int_param(key, OSSL_PKEY_PARAM_EC_DECODED_FROM_EXPLICIT_PARAMS, &spelled_out) != 1 ||
          spelled_out == 0);
}

Key read_key(const std::string& pem, std::string_view what) {
  if (pem.size() > kLongestPem) fail_user("{} is no private key: more than {} bytes", what, kLongestPem);
  Key key(PEM_read_bio_PrivateKey(reader_of(pem).get(), nullptr, no_passphrase, nullptr));
  if (!key) fail_user("{} is no private key without a passphrase (PEM text that begins with BEGIN PRIVATE KEY)", what);
  if (!is_our_kind(key.get())) fail_user("{} is no ECDSA key on {}", what, kCurve);
  return key;
}

Key make_key() {
  return must(Key(EVP_PKEY_Q_keygen(nullptr, nullptr, "EC", kCurve)));
}

// ---- names and times in certificates

std::string_view bytes_of(const ASN1_STRING* text) {
  return {reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)), static_cast<size_t>(ASN1_STRING_length(text))};
}

struct AlternativeNames {
  std::vector<std::string> uris;
  std::vector<std::string> hosts;  // well-formed ones
  int entries = 0;                 // of whatever kind
};

std::string address_text(std::string_view bytes) {
  const int family = bytes.size() == sizeof(in_addr) ? AF_INET : AF_INET6;
  if (family == AF_INET6 && bytes.size() != sizeof(in6_addr)) return "";
  std::array<char, INET6_ADDRSTRLEN> text{};
  return ::inet_ntop(family, bytes.data(), text.data(), text.size()) == nullptr ? "" : text.data();
}

AlternativeNames sort_names(const GENERAL_NAMES* names) {
  AlternativeNames sorted;
  sorted.entries = std::max(0, sk_GENERAL_NAME_num(names));
  for (int i = 0; i < sorted.entries; ++i) {
    int kind = 0;
    const auto* value =
        static_cast<const ASN1_STRING*>(GENERAL_NAME_get0_value(sk_GENERAL_NAME_value(names, i), &kind));
    if (kind == GEN_URI) {
      sorted.uris.emplace_back(bytes_of(value));
    } else if (kind == GEN_DNS || kind == GEN_IPADD) {
      std::string host = kind == GEN_DNS ? std::string(bytes_of(value)) : address_text(bytes_of(value));
      if (host_kind(host) != HostKind::kNeither) sorted.hosts.push_back(std::move(host));
    }
  }
  return sorted;
}

AlternativeNames alternative_names(const X509* certificate) {
  const GeneralNames names(
      static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  return sort_names(names.get());
}

std::string client_name_of(const X509* certificate) {
  const AlternativeNames names = alternative_names(certificate);
  return names.entries == 1 && names.uris.size() == 1 ? name_in_uri(names.uris.front()) : "";
}

int64_t seconds_of(const ASN1_TIME* time) {
  std::tm parts{};
  if (ASN1_TIME_to_tm(time, &parts) != 1) fail_user("this certificate states a time that cannot be read");
  return ::timegm(&parts);
}

Validity validity_of(const X509* certificate) {
  return {seconds_of(X509_get0_notBefore(certificate)), seconds_of(X509_get0_notAfter(certificate))};
}

// ---- making certificates

struct Authority {
  Key key;
  Certificate certificate;
};

Authority open_authority(const KeyPair& pair) {
  Authority authority{read_key(pair.key_pem, "the authority's key"),
                      read_certificate(pair.certificate_pem, kAuthoritysCertificate)};
  if (X509_check_private_key(authority.certificate.get(), authority.key.get()) != 1) {
    fail_user("the authority's key and its certificate do not belong together");
  }
  if (X509_check_ca(authority.certificate.get()) != 1)
    fail_user("{} is not one that can issue others", kAuthoritysCertificate);
  if (validity_of(authority.certificate.get()).not_after <= std::time(nullptr)) {
    fail_user("{} has expired; make a new authority", kAuthoritysCertificate);
  }
  return authority;
}

void set_name(X509_NAME* subject, const std::string& name) {
  const auto* text = reinterpret_cast<const unsigned char*>(name.data());
  must(X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, text, static_cast<int>(name.size()), -1, 0) == 1);
}

void set_serial_number(X509* certificate) {
  std::array<unsigned char, 16> bytes{};
  must(RAND_bytes(bytes.data(), bytes.size()) == 1);
  bytes[0] = static_cast<unsigned char>((bytes[0] & 0x3FU) | 0x40U);  // positive, and of one length
  const BigNumber number = must(BigNumber(BN_bin2bn(bytes.data(), bytes.size(), nullptr)));
  must(BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(certificate)) != nullptr);
}

void set_validity(X509* certificate, int days, int64_t latest) {
  if (days < 1 || days > kMostDays) fail_user("a certificate is valid for 1 to {} days, not {}", kMostDays, days);
  const int64_t now = std::time(nullptr);
  must(ASN1_TIME_set(X509_getm_notBefore(certificate), now - kClockTolerance) != nullptr);
  must(ASN1_TIME_set(X509_getm_notAfter(certificate), std::min(latest, now + days * kSecondsPerDay)) != nullptr);
}

void add_extension(X509* certificate, X509* issuer, int kind, const std::string& text) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const Extension extension = must(Extension(X509V3_EXT_conf_nid(nullptr, &context, kind, text.c_str())));
  must(X509_add_ext(certificate, extension.get(), -1) == 1);
}

// By `authority`, or by itself if that is null.
Certificate make_certificate(const std::string& name, EVP_PKEY* key, EVP_PKEY* signer, X509* authority, int days,
                             const ExtensionTexts& extensions) {
  Certificate certificate = must(Certificate(X509_new()));
  X509* const issuer = authority == nullptr ? certificate.get() : authority;
  must(X509_set_version(certificate.get(), X509_VERSION_3) == 1);
  set_serial_number(certificate.get());
  set_validity(certificate.get(), days, authority == nullptr ? INT64_MAX : validity_of(authority).not_after);
  set_name(X509_get_subject_name(certificate.get()), name);
  must(X509_set_issuer_name(certificate.get(), X509_get_subject_name(issuer)) == 1);
  must(X509_set_pubkey(certificate.get(), key) == 1);
  add_extension(certificate.get(), issuer, NID_subject_key_identifier, "hash");
  if (authority != nullptr) add_extension(certificate.get(), issuer, NID_authority_key_identifier, "keyid:always");
  for (const auto& [kind, text] : extensions) add_extension(certificate.get(), issuer, kind, text);
  must(X509_sign(certificate.get(), signer, EVP_sha256()) > 0);
  return certificate;
}

ExtensionTexts leaf_extensions(const char* usage, const std::string& names) {
  return {{NID_basic_constraints, "critical,CA:FALSE"},
          {NID_key_usage, "critical,digitalSignature"},
          {NID_ext_key_usage, usage},
          {NID_subject_alt_name, names}};
}

std::string names_of_hosts(const std::vector<std::string>& hosts) {
  if (hosts.empty()) fail_user("a server needs at least one host name or address");
  std::vector<std::string> names;
  for (const std::string& host : hosts) {
    const HostKind kind = host_kind(host);
    if (kind == HostKind::kNeither) fail_user("'{}' is neither a host name nor an IP address", host);
    names.push_back((kind == HostKind::kAddress ? "IP:" : "DNS:") + host);
  }
  return join(names, ",");
}

// ---- requests

[[noreturn]] void refuse(const std::string& why) {
  throw RequestRefused("the request for a certificate is refused: " + why);
}

struct CheckedRequest {
  SigningRequest request;
  std::string name;
};

std::string name_asked_for(X509_REQ* request) {
  const Extensions extensions(X509_REQ_get_extensions(request));
  if (sk_X509_EXTENSION_num(extensions.get()) != 1) refuse("it must ask for a client's name and nothing else");
  const GeneralNames names(
      static_cast<GENERAL_NAMES*>(X509V3_get_d2i(extensions.get(), NID_subject_alt_name, nullptr, nullptr)));
  const AlternativeNames sorted = sort_names(names.get());
  std::string name = sorted.entries == 1 && sorted.uris.size() == 1 ? name_in_uri(sorted.uris.front()) : "";
  if (name.empty()) refuse("it must ask for one name, as the URI " + client_uri("NAME"));
  return name;
}

CheckedRequest check_request(const std::string& csr_pem) {
  if (csr_pem.size() > kLongestPem) refuse(fmt::format("it has more than {} bytes", kLongestPem));
  SigningRequest request(PEM_read_bio_X509_REQ(reader_of(csr_pem).get(), nullptr, no_passphrase, nullptr));
  if (!request) refuse("it is no PEM text that begins with BEGIN CERTIFICATE REQUEST");
  EVP_PKEY* const key = X509_REQ_get0_pubkey(request.get());
  if (!is_our_kind(key)) refuse(fmt::format("its key is no ECDSA key on {}", kCurve));
  if (X509_REQ_get_signature_nid(request.get()) != NID_ecdsa_with_SHA256) refuse("it is not signed with SHA-256");
  if (X509_REQ_verify(request.get(), key) != 1) refuse("it is not signed by its own key");
  std::string name = name_asked_for(request.get());
  return {std::move(request), std::move(name)};
}

}  // namespace

KeyPair make_authority(const std::string& name, int days) {
  const OwnErrors errors;
  check_name(name, "a federation");
  const Key key = make_key();
  const Certificate certificate = make_certificate(
      name, key.get(), key.get(), nullptr, days,
      {{NID_basic_constraints, "critical,CA:TRUE,pathlen:0"}, {NID_key_usage, "critical,keyCertSign,cRLSign"}});
  return {to_pem(key.get()), to_pem(certificate.get())};
}

KeyPair issue_server(const KeyPair& authority, const std::vector<std::string>& hosts, int days) {
  const OwnErrors errors;
  const Authority by = open_authority(authority);
  const std::string names = names_of_hosts(hosts);
  const Key key = make_key();
  const Certificate certificate = make_certificate("server", key.get(), by.key.get(), by.certificate.get(), days,
                                                   leaf_extensions("serverAuth", names));
  return {to_pem(key.get()), to_pem(certificate.get())};
}

Request make_request(const std::string& client_name) {
  const OwnErrors errors;
  std::string key_pem = to_pem(make_key().get());
  std::string csr_pem = make_csr(key_pem, client_name);
  return {std::move(key_pem), std::move(csr_pem)};
}

std::string make_csr(const std::string& key_pem, const std::string& client_name) {
  const OwnErrors errors;
  check_name(client_name, "a client");
  const Key key = read_key(key_pem, "the client's key");
  const SigningRequest request = must(SigningRequest(X509_REQ_new()));
  must(X509_REQ_set_version(request.get(), X509_REQ_VERSION_1) == 1);
  set_name(X509_REQ_get_subject_name(request.get()), client_name);
  must(X509_REQ_set_pubkey(request.get(), key.get()) == 1);
  const Extensions extensions = must(Extensions(sk_X509_EXTENSION_new_null()));
  Extension name = must(Extension(
      X509V3_EXT_conf_nid(nullptr, nullptr, NID_subject_alt_name, ("URI:" + client_uri(client_name)).c_str())));
  must(sk_X509_EXTENSION_push(extensions.get(), name.get()) > 0);
  static_cast<void>(name.release());
  must(X509_REQ_add_extensions(request.get(), extensions.get()) == 1);
  must(X509_REQ_sign(request.get(), key.get(), EVP_sha256()) > 0);
  return text_of([&](BIO* bio) { return PEM_write_bio_X509_REQ(bio, request.get()); });
}

std::string requested_name(const std::string& csr_pem) {
  const OwnErrors errors;
  return check_request(csr_pem).name;
}

std::string issue_client(const KeyPair& authority, const std::string& csr_pem, const std::string& expected_name,
                         int days) {
  const OwnErrors errors;
  check_name(expected_name, "a client");
  const Authority by = open_authority(authority);
  const CheckedRequest checked = check_request(csr_pem);
  if (checked.name != expected_name) {
    refuse(fmt::format("it asks for the name {} instead of {}", checked.name, expected_name));
  }
  return to_pem(make_certificate(expected_name, X509_REQ_get0_pubkey(checked.request.get()), by.key.get(),
                                 by.certificate.get(), days,
                                 leaf_extensions("clientAuth", "URI:" + client_uri(expected_name)))
                    .get());
}

namespace {

void check_issued(const std::string& certificate_pem, const std::string& key_pem, const std::string& authority_pem,
                  int purpose) {
  const Certificate certificate = read_certificate(certificate_pem, "the certificate");
  const Certificate authority = read_certificate(authority_pem, kAuthoritysCertificate);
  const Key key = read_key(key_pem, "the key at home");
  if (X509_check_ca(authority.get()) != 1) fail_user("{} is not one that can issue others", kAuthoritysCertificate);
  if (purpose == X509_PURPOSE_SSL_CLIENT && client_name_of(certificate.get()).empty()) {
    fail_user("the certificate names no client");
  }
  if (X509_check_private_key(certificate.get(), key.get()) != 1) {
    fail_user("the certificate was issued for another key than the one at home");
  }
  const TrustStore store = must(TrustStore(X509_STORE_new()));
  const Verification verification = must(Verification(X509_STORE_CTX_new()));
  must(X509_STORE_add_cert(store.get(), authority.get()) == 1);
  must(X509_STORE_CTX_init(verification.get(), store.get(), certificate.get(), nullptr) == 1);
  must(X509_STORE_CTX_set_purpose(verification.get(), purpose) == 1);
  if (X509_verify_cert(verification.get()) != 1) {
    fail_user("the certificate is not a valid one of this authority: {}",
              X509_verify_cert_error_string(X509_STORE_CTX_get_error(verification.get())));
  }
}

}  // namespace

void check_client(const std::string& certificate_pem, const std::string& key_pem, const std::string& authority_pem) {
  const OwnErrors errors;
  check_issued(certificate_pem, key_pem, authority_pem, X509_PURPOSE_SSL_CLIENT);
}

void check_server(const std::string& certificate_pem, const std::string& key_pem, const std::string& authority_pem) {
  const OwnErrors errors;
  check_issued(certificate_pem, key_pem, authority_pem, X509_PURPOSE_SSL_SERVER);
}

std::string fingerprint(const std::string& certificate_pem) {
  const OwnErrors errors;
  const Certificate certificate = read_certificate(certificate_pem);
  return sha256(text_of([&](BIO* bio) { return i2d_X509_bio(bio, certificate.get()); }));
}

std::string client_name(const std::string& certificate_pem) {
  const OwnErrors errors;
  return client_name_of(read_certificate(certificate_pem).get());
}

std::vector<std::string> hosts(const std::string& certificate_pem) {
  const OwnErrors errors;
  return alternative_names(read_certificate(certificate_pem).get()).hosts;
}

std::string subject(const std::string& certificate_pem) {
  const OwnErrors errors;
  const Certificate certificate = read_certificate(certificate_pem);
  return text_of([&](BIO* bio) {
    return X509_NAME_print_ex(bio, X509_get_subject_name(certificate.get()), 0, XN_FLAG_RFC2253) >= 0 ? 1 : 0;
  });
}

bool is_authority(const std::string& certificate_pem) {
  const OwnErrors errors;
  return X509_check_ca(read_certificate(certificate_pem).get()) == 1;
}

Validity validity(const std::string& certificate_pem) {
  const OwnErrors errors;
  return validity_of(read_certificate(certificate_pem).get());
}

int64_t issued(const std::string& certificate_pem) {
  return validity(certificate_pem).not_before + kClockTolerance;
}

std::string only_certificate(const std::string& certificate_pem) {
  const OwnErrors errors;
  return to_pem(read_certificate(certificate_pem).get());
}

}  // namespace sotto::net
