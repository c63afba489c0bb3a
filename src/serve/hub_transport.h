// Rounds through a hub: publishes the broadcast, waits for uploads, hands them on in the order of the clients.
#pragma once

#include "federation/transport.h"
#include "privacy/ledger.h"
#include "privacy/wire.h"
#include "serve/evaluation.h"
#include "serve/hub.h"

#include <functional>
#include <memory>
#include <optional>
#include <vector>

namespace sotto::serve {

class HubTransport : public federation::Transport {
 public:
  // All arguments must outlive it. The releases that an upload rests on are written into `ledger` before it is handed on.
  HubTransport(Hub& hub, const federation::FederationPlan& plan, privacy::Ledger& ledger, std::function<bool()> stop);

  // Interrupted if it was asked to stop; the round stays open.
  void exchange(const std::vector<int64_t>& cohort, const methods::Broadcast& broadcast,
                const std::function<void(federation::Reply&&)>& accept) override;
  // The server of a federation between machines holds no records to test with.
  federation::Predictions test(const methods::Broadcast&) override { return {}; }
  // Nobody is asked: what clients release of their models, collect_evaluation brings, once.
  void evaluate(const std::vector<int64_t>&, const methods::Broadcast&,
                const std::function<void(federation::ClientScore&&)>&) override {}

  // The round after the last, in which clients say how many held-out records the model gets right. Whoever has not answered
  // by the deadline is left out. Interrupted as above.
  std::vector<ReleasedCount> collect_evaluation(const methods::Broadcast& broadcast);

 private:
  // What is expected of a round's uploads.
  struct Expected {
    methods::ReleasePlan releases;  // of any client: all make the same kinds
    privacy::UploadShape shape;
  };
  using Take = std::function<void(federation::Reply&&, const std::vector<privacy::Event>&)>;
  void gather(const methods::Broadcast& broadcast, const std::shared_ptr<const Expected>& expected,
              std::optional<int64_t> quorum, const Take& take);

  Hub& hub_;
  const federation::FederationPlan& plan_;
  const methods::ReleasePlan releases_;  // in the order of the plan
  privacy::Ledger& ledger_;
  std::function<bool()> stop_;
};

}  // namespace sotto::serve
