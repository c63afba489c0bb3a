// OpenSSL's objects with owners, and its errors kept from those who share its queue.
#pragma once

#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/x509.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>

#include <memory>
#include <stdexcept>

namespace sotto::net {

template <auto free>
struct FreeWith {
  template <typename T>
  void operator()(T* object) const {
    free(object);
  }
};

inline void free_extensions(STACK_OF(X509_EXTENSION) * extensions) {
  sk_X509_EXTENSION_pop_free(extensions, X509_EXTENSION_free);
}

using Bio = std::unique_ptr<BIO, FreeWith<BIO_free_all>>;
using BigNumber = std::unique_ptr<BIGNUM, FreeWith<BN_free>>;
using Key = std::unique_ptr<EVP_PKEY, FreeWith<EVP_PKEY_free>>;
using Certificate = std::unique_ptr<X509, FreeWith<X509_free>>;
using SigningRequest = std::unique_ptr<X509_REQ, FreeWith<X509_REQ_free>>;
using Extension = std::unique_ptr<X509_EXTENSION, FreeWith<X509_EXTENSION_free>>;
using Extensions = std::unique_ptr<STACK_OF(X509_EXTENSION), FreeWith<free_extensions>>;
using GeneralNames = std::unique_ptr<GENERAL_NAMES, FreeWith<GENERAL_NAMES_free>>;
using TrustStore = std::unique_ptr<X509_STORE, FreeWith<X509_STORE_free>>;
using Verification = std::unique_ptr<X509_STORE_CTX, FreeWith<X509_STORE_CTX_free>>;

// While it lives, errors are ours: what is left of them in the thread's queue would be taken for one of its connections.
class OwnErrors {
 public:
  OwnErrors() { ERR_set_mark(); }
  ~OwnErrors() { ERR_pop_to_mark(); }
  OwnErrors(const OwnErrors&) = delete;
  OwnErrors& operator=(const OwnErrors&) = delete;
};

// For calls that fail only where memory or randomness fails.
inline void must(bool succeeded) {
  if (!succeeded) throw std::runtime_error("OpenSSL failed where only a failing machine makes it fail");
}

template <typename Owner>
Owner must(Owner object) {
  must(static_cast<bool>(object));
  return object;
}

}  // namespace sotto::net
