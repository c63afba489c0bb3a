// Rounds through a hub: publishes the broadcast, waits for uploads, hands them on in the order of the clients.
#pragma once

#include "federation/transport.h"
#include "privacy/ledger.h"
#include "serve/hub.h"

#include <functional>

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
  void inspect_with(const methods::Broadcast& broadcast);
  void note_releases(int64_t round, int64_t client, const std::string& releases);

  Hub& hub_;
  const federation::FederationPlan& plan_;
  privacy::Ledger& ledger_;
  std::function<bool()> stop_;
};

}  // namespace sotto::serve
