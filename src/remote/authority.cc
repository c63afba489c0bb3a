#include "remote/authority.h"

#include "base/error.h"
#include "net/certificates.h"
#include "remote/address.h"
#include "remote/client.h"

#include <fmt/format.h>
#include <netdb.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <memory>

namespace sotto::remote {
namespace {

constexpr timeval kPatience{.tv_sec = 10, .tv_usec = 0};
constexpr unsigned char kHttp2[] = {2, 'h', '2'};

class Connection {
 public:
  explicit Connection(const std::string& address) {
    const Address wanted = split_address(address);
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    if (::getaddrinfo(wanted.host.c_str(), wanted.port.c_str(), &hints, &found) != 0) {
      throw Unreachable(fmt::format("{} cannot be reached: there is no such host or port", address));
    }
    const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> all(found, ::freeaddrinfo);
    for (const addrinfo* one = found; one != nullptr && descriptor_ < 0; one = one->ai_next) attempt(*one);
    if (descriptor_ < 0) throw Unreachable(fmt::format("{} cannot be reached: nobody listens there", address));
  }
  ~Connection() { ::close(descriptor_); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  int descriptor() const { return descriptor_; }

 private:
  void attempt(const addrinfo& where) {
    const int descriptor = ::socket(where.ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (descriptor < 0) return;
    ::setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &kPatience, sizeof kPatience);
    ::setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &kPatience, sizeof kPatience);
    if (::connect(descriptor, where.ai_addr, where.ai_addrlen) == 0) {
      descriptor_ = descriptor;
    } else {
      ::close(descriptor);
    }
  }

  int descriptor_ = -1;
};

std::string pem_of(X509* certificate) {
  const std::unique_ptr<BIO, decltype(&::BIO_free_all)> memory(::BIO_new(::BIO_s_mem()), ::BIO_free_all);
  char* text = nullptr;
  if (!memory || ::PEM_write_bio_X509(memory.get(), certificate) != 1) return "";
  const long size = BIO_get_mem_data(memory.get(), &text);
  return {text, static_cast<size_t>(size)};
}

}  // namespace

std::string find_authority(const std::string& address, const std::string& fingerprint) {
  const Connection connection(address);
  const std::unique_ptr<SSL_CTX, decltype(&::SSL_CTX_free)> context(::SSL_CTX_new(::TLS_client_method()),
                                                                    ::SSL_CTX_free);
  const std::unique_ptr<SSL, decltype(&::SSL_free)> session(context ? ::SSL_new(context.get()) : nullptr, ::SSL_free);
  if (!session) throw Unreachable("TLS is not to be had here");
  ::SSL_set_alpn_protos(session.get(), static_cast<const unsigned char*>(kHttp2), sizeof kHttp2);
  const bool shook_hands =
      ::SSL_set_fd(session.get(), connection.descriptor()) == 1 && ::SSL_connect(session.get()) == 1;
  ::ERR_clear_error();
  if (!shook_hands)
    throw Unreachable(fmt::format("{} cannot be reached: what listens there does not speak TLS", address));
  const STACK_OF(X509)* chain = ::SSL_get_peer_cert_chain(session.get());
  for (int i = 0; chain != nullptr && i < sk_X509_num(chain); ++i) {
    std::string certificate = pem_of(sk_X509_value(chain, i));
    if (!certificate.empty() && net::is_authority(certificate) && net::fingerprint(certificate) == fingerprint) {
      return certificate;
    }
  }
  fail_user("{} shows no authority with the fingerprint {}: ask the federation's owner again, on another way", address,
            fingerprint);
}

}  // namespace sotto::remote
