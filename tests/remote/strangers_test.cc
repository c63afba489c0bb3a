// Certificates over real TLS: who shows none of this authority, or one that is good no longer, or another's, is not let in.
#include "../serve/at_home.h"
#include "base/error.h"
#include "net/certificates.h"
#include "net/openssl.h"
#include "net/revocations.h"
#include "remote/client.h"
#include "remote/service.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <openssl/pem.h>

#include <ctime>

namespace sotto::remote {
namespace {

constexpr int kDays = 30;

const net::KeyPair& authority() {
  static const net::KeyPair pair = net::make_authority("north", kDays);
  return pair;
}

net::Identity identity_from(const net::KeyPair& by, const std::string& name) {
  const net::Request request = net::make_request(name);
  return {.key_pem = request.key_pem,
          .certificate_pem = net::issue_client(by, request.csr_pem, name, kDays),
          .authority_pem = authority().certificate_pem};
}

// The same, but that it ended a minute ago.
net::Identity expired(net::Identity identity) {
  const std::string& pem = identity.certificate_pem;
  const net::Bio in(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  const net::Certificate certificate(PEM_read_bio_X509(in.get(), nullptr, nullptr, nullptr));
  const std::string& signer_pem = authority().key_pem;
  const net::Bio key_in(BIO_new_mem_buf(signer_pem.data(), static_cast<int>(signer_pem.size())));
  const net::Key signer(PEM_read_bio_PrivateKey(key_in.get(), nullptr, nullptr, nullptr));
  ASN1_TIME_set(X509_getm_notAfter(certificate.get()), std::time(nullptr) - 60);
  EXPECT_GT(X509_sign(certificate.get(), signer.get(), EVP_sha256()), 0);
  const net::Bio out(BIO_new(BIO_s_mem()));
  PEM_write_bio_X509(out.get(), certificate.get());
  char* data = nullptr;
  const long size = BIO_get_mem_data(out.get(), &data);
  identity.certificate_pem.assign(data, static_cast<size_t>(size));
  return identity;
}

class Strangers : public ::testing::Test {
 protected:
  Strangers()
      : setup_(federation::small_setup(serve::config("ldp-fedavg"))),
        plan_(serve::plan_of(setup_)),
        hub_(folder_ / "server", plan_),
        service_(hub_, plan_,
                 {.address = "127.0.0.1:0",
                  .server = net::issue_server(authority(), {"127.0.0.1"}, kDays),
                  .authority_pem = authority().certificate_pem,
                  .authority_folder = folder_.path()}) {}

  std::unique_ptr<Client> client(const std::optional<net::Identity>& identity) {
    return std::make_unique<Client>(fmt::format("127.0.0.1:{}", service_.port()), identity, "north-a");
  }

  test::TempFolder folder_;
  federation::Setup setup_;
  federation::FederationPlan plan_;
  serve::Hub hub_;
  Service service_;
};

TEST_F(Strangers, AreNotEvenShownThePlan) {
  const net::Identity good = identity_from(authority(), "north-a");
  EXPECT_EQ(client(good)->plan(), plan_.text());
  EXPECT_THROW(client(std::nullopt)->plan(), Unreachable) << "no certificate";
  EXPECT_THROW(client(identity_from(net::make_authority("north", kDays), "north-a"))->plan(), Unreachable)
      << "another authority of the same name";
  EXPECT_THROW(client(expired(good))->plan(), Unreachable);
  net::Identity borrowed = good;
  borrowed.key_pem = identity_from(authority(), "north-b").key_pem;
  EXPECT_THROW(client(borrowed)->plan(), Unreachable) << "a certificate without its key";
  EXPECT_TRUE(hub_.status().empty());
}

TEST_F(Strangers, ANameBelongsToItsCertificate) {
  const net::Identity good = identity_from(authority(), "north-a");
  EXPECT_EQ(client(good)->join(plan_.hash()).client, 0);
  EXPECT_THROW(client(identity_from(authority(), "north-a"))->join(plan_.hash()), UserError);
  EXPECT_THROW(client(identity_from(authority(), "north-b"))->next(plan_.hash()), UserError) << "it has not joined";
  EXPECT_EQ(hub_.status().size(), 1U);
}

TEST_F(Strangers, WhoWasRevokedGetsNoAnswerToAnything) {
  const auto shut_out = client(identity_from(authority(), "north-a"));
  shut_out->join(plan_.hash());
  net::revoke_client(folder_.path(), "north-a");
  EXPECT_THROW(shut_out->plan(), UserError);
  EXPECT_THROW(shut_out->next(plan_.hash()), UserError);
  EXPECT_THROW(shut_out->skip(1), UserError);
  EXPECT_THROW(shut_out->join(plan_.hash()), UserError);
}

}  // namespace
}  // namespace sotto::remote
