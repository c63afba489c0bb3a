// Rounds through a hub: publishes the broadcast, waits for uploads, hands them on in the order of the clients.
#pragma once

#include "federation/transport.h"
#include "privacy/ledger.h"
#include "serve/hub.h"

#include <functional>
#include <memory>

namespace sotto::serve {

class HubTransport : public federation::Transport {
 public:
  // All arguments must outlive it. The releases that an upload rests on are written into `ledger` before it is handed on.
  HubTransport(Hub& hub, const federation::FederationPlan& plan, privacy::Ledger& ledger, std::function<bool()> stop);

  // Interrupted if it was asked to stop; the round stays open.
  void exchange(const std::vector<int64_t>& cohort, const methods::Broadcast& broadcast,
                const std::function<void(federation::Reply&&)>& accept) override;
  // Clients test their models at home, and tell nobody.
  void evaluate(const std::vector<int64_t>&, const methods::Broadcast&,
                const std::function<void(federation::ClientScore&&)>&) override {}

 private:
  Hub& hub_;
  const federation::FederationPlan& plan_;
  const std::shared_ptr<const methods::ReleasePlan> releases_;  // of any client: all make the same kinds
  privacy::Ledger& ledger_;
  std::function<bool()> stop_;
};

}  // namespace sotto::serve
