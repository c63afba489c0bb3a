// What a server tells Prometheus: how rounds go, and nothing of any one client. Names stay out, because whoever reaches
// the port may read it.
#pragma once

#include "federation/federation.h"
#include "serve/hub.h"

#include <cstdint>
#include <memory>
#include <string>

namespace sotto::serve {

class Metrics {
 public:
  // GET http://ADDRESS/metrics from here on; port 0 takes a free one. An address that cannot be had is a UserError. Hub
  // and plan must outlive it.
  Metrics(Hub& hub, const federation::FederationPlan& plan, const std::string& address);
  ~Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  void round_done(const federation::RoundRecord& record);
  int port() const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace sotto::serve
