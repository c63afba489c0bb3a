// A hub on the network: gRPC over TLS, where both sides show certificates of one authority.
#pragma once

#include "federation/federation_plan.h"
#include "net/certificates.h"
#include "serve/hub.h"

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

namespace sotto::remote {

struct ServiceOptions {
  std::string address;  // host:port; port 0 takes a free one
  // None: everything travels in the clear and clients are who they say they are. Only on the loopback interface.
  std::optional<net::KeyPair> server;
  std::string authority_pem;
  std::filesystem::path authority_folder = {};  // that says whose certificates were revoked; "": nobody's
};

class Service {
 public:
  // Listens from here on. An address that cannot be had is a UserError. Hub and plan must outlive it.
  Service(serve::Hub& hub, const federation::FederationPlan& plan, const ServiceOptions& options);
  ~Service();
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  int port() const;
  // Answers nobody any more; calls under way have two seconds to end.
  void shut_down();

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

// Hands certificates to whoever has a one-time token, on a port of its own: clients come without a certificate.
class EnrolmentService {
 public:
  // `folder` holds the authority and the tokens (net/key_folders.h, net/tokens.h).
  EnrolmentService(const std::filesystem::path& folder, const std::string& address);
  ~EnrolmentService();
  EnrolmentService(const EnrolmentService&) = delete;
  EnrolmentService& operator=(const EnrolmentService&) = delete;

  int port() const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace sotto::remote
