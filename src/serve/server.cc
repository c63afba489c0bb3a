#include "serve/server.h"

#include "base/error.h"
#include "base/fault_points.h"
#include "base/files.h"
#include "federation/cohort.h"
#include "privacy/noise/noise_source.h"
#include "serve/evaluation.h"

#include <nlohmann/json.hpp>

#include <utility>

namespace sotto::serve {
namespace {

// Before anything in the folder is touched: clients have agreed to this plan and no other.
const fs::path& of_this_plan(const fs::path& folder, const federation::FederationPlan& plan) {
  const fs::path known = folder / kPlanFile;
  if (fs::exists(known) && read_file(known) != plan.text() + "\n") {
    fail_user("{} belongs to another plan; put its config back, or serve from another folder", folder.string());
  }
  return folder;
}

}  // namespace

Server::Server(const fs::path& folder, const federation::FederationPlan& plan, std::function<bool()> stop)
    : folder_(folder),
      plan_(plan),
      directory_(of_this_plan(folder, plan), plan.setup().spec(), fs::exists(folder / "config.toml")),
      hub_(folder, plan),
      transport_(hub_, plan, directory_.ledger(), std::move(stop)),
      cohort_key_(privacy::NoiseSource::fresh_key()) {
  write_file_atomically(folder_ / kPlanFile, plan_.text() + "\n");
  federation_ = std::make_unique<federation::Federation>(
      plan_.setup(), [this](int64_t round) { return hub_.cohort(round, [&] { return draw_cohort(round); }); },
      transport_, nullptr, directory_.ledger(), directory_.resume_from());
  if (rounds_done() > hub_.durable_round()) hub_.close(rounds_done());
  // What is made of a round is seen by nobody before its checkpoint is on disk.
  federation_->resume_unseen_round();
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

std::optional<nlohmann::json> Server::evaluate() {
  const auto& terms = plan_.setup().evaluation();
  if (!terms) return std::nullopt;
  const int64_t round = rounds_done() + 1;
  if (auto known = read_evaluation(folder_)) {
    if (hub_.durable_round() < round) hub_.close(round);
    return known;
  }
  std::vector<int64_t> members;
  for (const MemberStatus& member : hub_.status()) {
    if (!member.revoked) members.push_back(member.client);
  }
  const std::vector<int64_t> asked = hub_.cohort(round, [&] { return members; });
  nlohmann::json evaluation = evaluation_json(transport_.collect_evaluation(federation_->broadcast()), terms->records,
                                              static_cast<int64_t>(asked.size()));
  directory_.ledger().commit();
  fault_point("serve.evaluated");
  write_evaluation(folder_, evaluation);
  fault_point("serve.evaluation-written");
  hub_.close(round);
  return evaluation;
}

artifacts::RunSummary Server::finish() {
  artifacts::RunSummary summary = directory_.finish();
  fault_point("serve.summarised");
  hub_.publish(federation_->broadcast(), true);
  return summary;
}

}  // namespace sotto::serve
