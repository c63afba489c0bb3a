// Many clients of a federation in one process, each with a certificate and a connection of its own. They train nothing:
// all of them fetch every broadcast and send the same made-up upload, which the server finds to be in order.
#pragma once

#include "federation/federation_plan.h"
#include "methods/method.h"
#include "net/certificates.h"
#include "net/key_folders.h"

#include <cstdint>
#include <memory>
#include <string>

namespace sotto::bench {

// A new client's key and certificate.
net::Identity made_up_identity(const net::KeyPair& authority, const std::string& name);

// An upload that answers the plan's first broadcast, and what to say of the releases in it.
class MadeUpUpload {
 public:
  // The plan must outlive it.
  explicit MadeUpUpload(const federation::FederationPlan& plan);

  const std::string& bytes() const { return bytes_; }
  const std::string& digest() const { return digest_; }
  std::string key(int64_t round, int64_t client) const;
  std::string releases(int64_t round, int64_t client) const;

 private:
  const federation::FederationPlan& plan_;
  const methods::ReleasePlan releases_;
  std::string bytes_;
  std::string digest_;
};

class Swarm {
 public:
  // The plan must outlive it.
  Swarm(const std::string& address, const net::KeyPair& authority, const federation::FederationPlan& plan,
        int64_t clients);
  // Hangs up.
  ~Swarm();
  Swarm(const Swarm&) = delete;
  Swarm& operator=(const Swarm&) = delete;

  // So many more connect and join; returns when they have, and are waiting for work or at it.
  void join(int64_t clients);
  // Until everybody has left or failed.
  void wait();

  // Those who were refused, cut off or told something that makes no sense.
  int64_t failed() const;
  // The first of their reasons; "" if there is none.
  std::string failure() const;
  // Uploads that the server has stored.
  int64_t stored() const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace sotto::bench
