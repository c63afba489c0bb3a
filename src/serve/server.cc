#include "serve/server.h"

#include "base/fault_points.h"
#include "base/files.h"
#include "federation/cohort.h"
#include "privacy/noise/noise_source.h"

#include <nlohmann/json.hpp>

#include <utility>

namespace sotto::serve {

Server::Server(const fs::path& folder, const federation::FederationPlan& plan, std::function<bool()> stop)
    : plan_(plan),
      directory_(folder, plan.setup().spec(), fs::exists(folder / "config.toml")),
      hub_(folder, plan),
      transport_(hub_, plan, directory_.ledger(), std::move(stop)),
      cohort_key_(privacy::NoiseSource::fresh_key()) {
  federation_ = std::make_unique<federation::Federation>(
      plan_.setup(), [this](int64_t round) { return hub_.cohort(round, [&] { return draw_cohort(round); }); },
      transport_, nullptr, directory_.ledger(), directory_.resume_from());
  if (rounds_done() > hub_.durable_round()) hub_.close(rounds_done());
}

// From a key that nobody else knows. It ends with the process, and rounds that were drawn are on disk.
std::vector<int64_t> Server::draw_cohort(int64_t round) {
  return federation::draw_cohort(plan_.setup().spec(), cohort_key_, round);
}

std::optional<federation::RoundRecord> Server::next_round() {
  auto record = federation_->next_round();
  if (!record) return record;
  fault_point("serve.folded");
  directory_.round(*record);
  directory_.checkpoint(federation_->checkpoint());
  fault_point("serve.checkpointed");
  hub_.close(record->round);
  return record;
}

nlohmann::json Server::finish() {
  nlohmann::json summary = directory_.finish();
  hub_.publish(federation_->broadcast(), true);
  return summary;
}

}  // namespace sotto::serve
