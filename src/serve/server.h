// A federation between machines, from the server's side: a run directory that a hub fills.
#pragma once

#include "artifacts/run_directory.h"
#include "federation/federation.h"
#include "privacy/noise/keystream.h"
#include "serve/hub.h"
#include "serve/hub_transport.h"

#include <nlohmann/json_fwd.hpp>

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>

namespace sotto::serve {

inline constexpr const char* kPlanFile = "plan.json";  // in the folder: what clients are shown

class Server {
 public:
  // Begins, or goes on where an earlier process in this folder ended. The plan must outlive it; `stop` is asked now and
  // then, from any thread.
  Server(const std::filesystem::path& folder, const federation::FederationPlan& plan, std::function<bool()> stop);

  Hub& hub() { return hub_; }
  const privacy::Ledger& ledger() const { return directory_.ledger(); }

  // The next round, durable before it is handed out. Nothing after the last. Interrupted if asked to stop.
  std::optional<federation::RoundRecord> next_round();
  // Rounds that are done.
  int64_t rounds_done() const { return federation_->broadcast().round; }
  // After the last round, if the plan asks for it: what clients release of how good the model is (evaluation.json).
  // Nothing if it does not ask. Interrupted if asked to stop.
  std::optional<nlohmann::json> evaluate();
  // Lets clients fetch the final model, and writes summary.json.
  artifacts::RunSummary finish();

 private:
  std::vector<int64_t> draw_cohort(int64_t round);

  const std::filesystem::path folder_;
  const federation::FederationPlan& plan_;
  artifacts::RunDirectory directory_;
  Hub hub_;
  HubTransport transport_;
  privacy::Seed cohort_key_;
  std::unique_ptr<federation::Federation> federation_;
};

}  // namespace sotto::serve
