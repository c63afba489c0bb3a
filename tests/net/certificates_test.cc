#include "net/certificates.h"

#include "../support/expect_user_error.h"
#include "../support/temp_folder.h"
#include "base/files.h"
#include "net/openssl.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/err.h>
#include <openssl/pem.h>

#include <cstdlib>
#include <ctime>
#include <functional>

namespace sotto::net {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int64_t kDay = 86400;

#define EXPECT_REFUSED(statement, part)                             \
  try {                                                             \
    statement;                                                      \
    ADD_FAILURE() << "not refused; expected: " << (part);           \
  } catch (const RequestRefused& refused) {                         \
    EXPECT_THAT(std::string(refused.what()), HasSubstr(part));      \
    EXPECT_THAT(std::string(refused.what()), Not(HasSubstr("\n"))); \
  }

const KeyPair& authority() {
  static const KeyPair pair = make_authority("north", 30);
  return pair;
}

// A request that is made by hand, so that it may be wrong. `extensions` are pairs of what OpenSSL's configs say.
struct HandMade {
  std::string key_kind = "EC";
  std::string curve = "P-256";
  const EVP_MD* digest = EVP_sha256();
  std::vector<std::pair<int, std::string>> extensions = {{NID_subject_alt_name, "URI:sotto://client/clinic-a"}};

  std::string csr() const {
    const Key key(key_kind == "EC" ? EVP_PKEY_Q_keygen(nullptr, nullptr, "EC", curve.c_str())
                                   : EVP_PKEY_Q_keygen(nullptr, nullptr, "RSA", size_t{2048}));
    const SigningRequest request(X509_REQ_new());
    X509_REQ_set_pubkey(request.get(), key.get());
    const Extensions list(sk_X509_EXTENSION_new_null());
    for (const auto& [kind, text] : extensions) {
      sk_X509_EXTENSION_push(list.get(), X509V3_EXT_conf_nid(nullptr, nullptr, kind, text.c_str()));
    }
    if (!extensions.empty()) X509_REQ_add_extensions(request.get(), list.get());
    EXPECT_GT(X509_REQ_sign(request.get(), key.get(), digest), 0);
    const Bio bio(BIO_new(BIO_s_mem()));
    PEM_write_bio_X509_REQ(bio.get(), request.get());
    char* data = nullptr;
    const long size = BIO_get_mem_data(bio.get(), &data);
    return {data, static_cast<size_t>(size)};
  }
};

// The same request with another name in it: as long, so that only the signature is wrong.
std::string forged(const std::string& csr_pem) {
  const Bio in(BIO_new_mem_buf(csr_pem.data(), static_cast<int>(csr_pem.size())));
  const SigningRequest request(PEM_read_bio_X509_REQ(in.get(), nullptr, nullptr, nullptr));
  const Bio der(BIO_new(BIO_s_mem()));
  i2d_X509_REQ_bio(der.get(), request.get());
  char* data = nullptr;
  const long size = BIO_get_mem_data(der.get(), &data);
  std::string bytes(data, static_cast<size_t>(size));
  const std::string uri = "sotto://client/clinic-a";
  bytes.replace(bytes.find(uri), uri.size(), "sotto://client/clinic-b");
  const Bio out(BIO_new(BIO_s_mem()));
  PEM_write_bio(out.get(), PEM_STRING_X509_REQ, "", reinterpret_cast<const unsigned char*>(bytes.data()),
                static_cast<long>(bytes.size()));
  const long pem_size = BIO_get_mem_data(out.get(), &data);
  return {data, static_cast<size_t>(pem_size)};
}

// The same certificate, signed again by this key, with another end.
std::string ending_at(const std::string& certificate_pem, const std::string& signer_pem, int64_t not_after) {
  const Bio in(BIO_new_mem_buf(certificate_pem.data(), static_cast<int>(certificate_pem.size())));
  const Certificate certificate(PEM_read_bio_X509(in.get(), nullptr, nullptr, nullptr));
  const Bio key_in(BIO_new_mem_buf(signer_pem.data(), static_cast<int>(signer_pem.size())));
  const Key signer(PEM_read_bio_PrivateKey(key_in.get(), nullptr, nullptr, nullptr));
  ASN1_TIME_set(X509_getm_notAfter(certificate.get()), not_after);
  EXPECT_GT(X509_sign(certificate.get(), signer.get(), EVP_sha256()), 0);
  const Bio out(BIO_new(BIO_s_mem()));
  PEM_write_bio_X509(out.get(), certificate.get());
  char* data = nullptr;
  const long size = BIO_get_mem_data(out.get(), &data);
  return {data, static_cast<size_t>(size)};
}

TEST(Authority, CanIssueAndNothingElse) {
  const std::string& pem = authority().certificate_pem;
  EXPECT_TRUE(is_authority(pem));
  EXPECT_EQ(subject(pem), "CN=north");
  EXPECT_EQ(client_name(pem), "");
  EXPECT_THAT(hosts(pem), ElementsAre());
  const int64_t now = std::time(nullptr);
  EXPECT_LE(validity(pem).not_before, now - 3000);
  EXPECT_NEAR(static_cast<double>(validity(pem).not_after), static_cast<double>(now + 30 * kDay), 60);
  EXPECT_USER_ERROR(make_authority("North Hospitals", 30), "the name of a federation");
  for (const int days : {-1, 0, 36501}) EXPECT_USER_ERROR(make_authority("north", days), "days");
  EXPECT_NE(fingerprint(make_authority("north", 30).certificate_pem), fingerprint(pem));
}

TEST(Server, IsValidForItsHosts) {
  const KeyPair server = issue_server(authority(), {"fl.example.org", "192.0.2.7", "2001:db8::7"}, 10);
  EXPECT_THAT(hosts(server.certificate_pem), ElementsAre("fl.example.org", "192.0.2.7", "2001:db8::7"));
  EXPECT_FALSE(is_authority(server.certificate_pem));
  EXPECT_EQ(client_name(server.certificate_pem), "");
  EXPECT_USER_ERROR(issue_server(authority(), {}, 10), "at least one host");
  EXPECT_USER_ERROR(issue_server(authority(), {"a.org", "b.org,URI:sotto://client/x"}, 10), "neither a host name");
  check_server(server.certificate_pem, server.key_pem, authority().certificate_pem);
  EXPECT_USER_ERROR(check_server(server.certificate_pem, authority().key_pem, authority().certificate_pem),
                    "another key");
  EXPECT_USER_ERROR(check_server(server.certificate_pem, server.key_pem, make_authority("north", 30).certificate_pem),
                    "not a valid one of this authority");
  EXPECT_USER_ERROR(check_client(server.certificate_pem, server.key_pem, authority().certificate_pem),
                    "names no client");
}

TEST(Client, GetsTheNameItAsksForAndIsExpectedToHave) {
  const Request request = make_request("clinic-a");
  EXPECT_EQ(requested_name(request.csr_pem), "clinic-a");
  const std::string certificate = issue_client(authority(), request.csr_pem, "clinic-a", 10);
  EXPECT_EQ(client_name(certificate), "clinic-a");
  EXPECT_FALSE(is_authority(certificate));
  EXPECT_THAT(hosts(certificate), ElementsAre());
  check_client(certificate, request.key_pem, authority().certificate_pem);
  EXPECT_THAT(request.csr_pem, Not(HasSubstr("PRIVATE")));
  EXPECT_REFUSED(issue_client(authority(), request.csr_pem, "clinic-b", 10), "asks for the name clinic-a");
  EXPECT_USER_ERROR(make_request("Clinic A"), "the name of a client");
}

TEST(Client, ASecondRequestIsByTheSameKey) {
  const Request request = make_request("clinic-a");
  const std::string certificate = issue_client(authority(), make_csr(request.key_pem, "clinic-a"), "clinic-a", 10);
  check_client(certificate, request.key_pem, authority().certificate_pem);
}

TEST(Client, RequestsThatAskForMoreOrAreNotTheirOwnAreRefused) {
  EXPECT_EQ(requested_name(HandMade().csr()), "clinic-a");  // what the others differ from
  EXPECT_REFUSED(requested_name(HandMade{.extensions = {}}.csr()), "nothing else");
  EXPECT_REFUSED(requested_name(HandMade{.extensions = {{NID_subject_alt_name, "URI:sotto://client/clinic-a"},
                                                        {NID_basic_constraints, "CA:TRUE"}}}
                                    .csr()),
                 "nothing else");
  for (const char* names :
       {"URI:sotto://client/clinic-a,URI:sotto://client/clinic-b", "URI:sotto://client/clinic-a,DNS:fl.example.org",
        "DNS:clinic-a", "URI:https://clinic-a", "URI:sotto://client/Clinic"}) {
    EXPECT_REFUSED(requested_name(HandMade{.extensions = {{NID_subject_alt_name, names}}}.csr()), "one name");
  }
  EXPECT_REFUSED(requested_name(HandMade{.curve = "P-384"}.csr()), "P-256");
  EXPECT_REFUSED(requested_name(HandMade{.key_kind = "RSA"}.csr()), "P-256");
  EXPECT_REFUSED(requested_name(HandMade{.digest = EVP_sha1()}.csr()), "SHA-256");
  EXPECT_REFUSED(requested_name(forged(make_request("clinic-a").csr_pem)), "its own key");
}

// Every byte in turn is another one: nothing crashes, and no altered request gets through as something else.
TEST(Client, DamagedRequestsAreRefused) {
  const std::string csr = make_request("clinic-a").csr_pem;
  for (size_t i = 0; i < csr.size(); ++i) {
    std::string damaged = csr;
    damaged[i] = damaged[i] == 'A' ? 'B' : 'A';
    try {
      EXPECT_EQ(requested_name(damaged), "clinic-a");
    } catch (const RequestRefused&) {
    }
  }
  EXPECT_REFUSED(requested_name(""), "BEGIN CERTIFICATE REQUEST");
  EXPECT_REFUSED(requested_name(csr.substr(0, csr.size() / 2)), "BEGIN CERTIFICATE REQUEST");
  EXPECT_REFUSED(requested_name(std::string(1 << 20, 'A')), "bytes");
  EXPECT_REFUSED(requested_name(authority().certificate_pem), "BEGIN CERTIFICATE REQUEST");
}

TEST(Client, ACertificateIsForItsKeyAndItsAuthority) {
  const Request request = make_request("clinic-a");
  const std::string certificate = issue_client(authority(), request.csr_pem, "clinic-a", 10);
  EXPECT_USER_ERROR(check_client(certificate, make_request("clinic-a").key_pem, authority().certificate_pem),
                    "another key");
  EXPECT_USER_ERROR(check_client(certificate, request.key_pem, make_authority("north", 30).certificate_pem),
                    "not a valid one of this authority");
  EXPECT_USER_ERROR(check_client(certificate, request.key_pem, certificate), "issue others");
  EXPECT_USER_ERROR(check_client("", request.key_pem, authority().certificate_pem),
                    "the certificate is no certificate");
  EXPECT_USER_ERROR(check_client(certificate, "", authority().certificate_pem), "the key at home");
}

TEST(Client, CannotActAsAnAuthority) {
  const Request request = make_request("clinic-a");
  const KeyPair client = {request.key_pem, issue_client(authority(), request.csr_pem, "clinic-a", 10)};
  EXPECT_USER_ERROR(issue_client(client, make_request("clinic-b").csr_pem, "clinic-b", 10), "issue others");
  EXPECT_USER_ERROR(issue_server({request.key_pem, authority().certificate_pem}, {"a.org"}, 10), "belong together");
}

TEST(Certificates, EndWithTheirAuthorityAtTheLatest) {
  const std::string certificate = issue_client(authority(), make_request("clinic-a").csr_pem, "clinic-a", 3650);
  EXPECT_EQ(validity(certificate).not_after, validity(authority().certificate_pem).not_after);
}

TEST(Certificates, AreWorthNothingOnceTheyExpired) {
  const int64_t now = std::time(nullptr);
  const Request request = make_request("clinic-a");
  const std::string& by = authority().key_pem;
  const KeyPair old_authority = {by, ending_at(authority().certificate_pem, by, now - 1)};
  EXPECT_USER_ERROR(issue_client(old_authority, request.csr_pem, "clinic-a", 10), "expired");
  EXPECT_USER_ERROR(issue_server(old_authority, {"localhost"}, 10), "expired");
  const std::string certificate = issue_client(authority(), request.csr_pem, "clinic-a", 10);
  check_client(ending_at(certificate, by, now + kDay), request.key_pem, authority().certificate_pem);
  EXPECT_USER_ERROR(check_client(ending_at(certificate, by, now - 1), request.key_pem, authority().certificate_pem),
                    "expired");
}

TEST(Certificates, BadTextIsOneLine) {
  const std::string& pem = authority().certificate_pem;
  const std::vector<std::function<void(const std::string&)>> readers = {
      [](const std::string& text) { fingerprint(text); }, [](const std::string& text) { client_name(text); },
      [](const std::string& text) { hosts(text); },       [](const std::string& text) { subject(text); },
      [](const std::string& text) { validity(text); },    [](const std::string& text) { is_authority(text); }};
  for (const auto& read : readers) {
    EXPECT_USER_ERROR(read(""), "no certificate");
    EXPECT_USER_ERROR(read(std::string("\0\0", 2)), "no certificate");
    EXPECT_USER_ERROR(read(pem.substr(0, pem.size() / 2)), "no certificate");
    EXPECT_USER_ERROR(read(authority().key_pem), "no certificate");
    EXPECT_USER_ERROR(read(pem + pem), "more than one");
    EXPECT_USER_ERROR(read(pem + std::string(1 << 16, ' ')), "bytes");
    for (size_t i = 0; i < pem.size(); i += 3) {
      std::string damaged = pem;
      damaged[i] = damaged[i] == 'A' ? 'B' : 'A';
      try {
        read(damaged);
      } catch (const UserError&) {
      }
    }
  }
}

// A queue of errors that is not left as it was makes the next connection of this thread fail.
TEST(Certificates, LeaveOpenSslsQueueOfErrorsAsItWas) {
  ERR_clear_error();
  EXPECT_USER_ERROR(fingerprint("-----BEGIN CERTIFICATE-----\nxx\n-----END CERTIFICATE-----\n"), "no certificate");
  EXPECT_REFUSED(requested_name("nothing"), "refused");
  EXPECT_USER_ERROR(make_csr("nothing", "clinic-a"), "no private key");
  EXPECT_EQ(ERR_peek_error(), 0UL);
}

TEST(Certificates, AKeyWithAPassphraseIsRefusedWithoutAsking) {
  const Key key(EVP_PKEY_Q_keygen(nullptr, nullptr, "EC", "P-256"));
  const Bio bio(BIO_new(BIO_s_mem()));
  std::string word = "word";
  PEM_write_bio_PrivateKey(bio.get(), key.get(), EVP_aes_128_cbc(), reinterpret_cast<unsigned char*>(word.data()),
                           static_cast<int>(word.size()), nullptr, nullptr);
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &data);
  EXPECT_USER_ERROR(make_csr(std::string(data, static_cast<size_t>(size)), "clinic-a"), "passphrase");
}

TEST(Certificates, StandAloneWithoutWhatIsAround) {
  const std::string& pem = authority().certificate_pem;
  EXPECT_EQ(only_certificate("some text\n" + pem + "more\n-----BEGIN TRUSTED CERTIFICATE-----\n"), pem);
}

// What another program makes of them.
TEST(Certificates, AreAcceptedByTheOpensslProgram) {
  if (std::system("openssl version >/dev/null 2>&1") != 0) GTEST_SKIP() << "there is no openssl program";
  const test::TempFolder folder;
  const Request request = make_request("clinic-a");
  const std::string certificate = issue_client(authority(), request.csr_pem, "clinic-a", 10);
  write_file_atomically(folder / "ca", authority().certificate_pem);
  write_file_atomically(folder / "server", issue_server(authority(), {"fl.example.org", "::1"}, 10).certificate_pem);
  write_file_atomically(folder / "client", certificate);
  const auto verifies = [&](const std::string& how) {
    return std::system(fmt::format("cd {} && openssl verify -x509_strict -CAfile ca {} >/dev/null 2>&1",
                                   folder.path().string(), how)
                           .c_str()) == 0;
  };
  EXPECT_TRUE(verifies("-purpose sslserver -verify_hostname fl.example.org server"));
  EXPECT_TRUE(verifies("-purpose sslserver -verify_ip ::1 server"));
  EXPECT_FALSE(verifies("-purpose sslserver -verify_hostname other.example.org server"));
  EXPECT_FALSE(verifies("-purpose sslclient server"));
  EXPECT_TRUE(verifies("-purpose sslclient client"));
  EXPECT_FALSE(verifies("-purpose sslserver client"));
  const std::string command = fmt::format(
      "cd {} && openssl x509 -in client -noout -fingerprint -sha256 | cut -d= -f2 | tr -d ':\\n' | "
      "tr A-F a-f >print",
      folder.path().string());
  ASSERT_EQ(std::system(command.c_str()), 0);
  EXPECT_EQ(read_file(folder / "print"), fingerprint(certificate));
}

}  // namespace
}  // namespace sotto::net
