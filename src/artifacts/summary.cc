#include "artifacts/summary.h"

#include "base/text.h"

namespace sotto::artifacts {
namespace {

using nlohmann::json;

// A release in the clear has no finite ε, and an observer who was sent nothing has learnt nothing: those are the two
// cases here.
json observer_row(const privacy::Ledger& ledger, const std::string& observer) {
  const std::vector<std::string> reasons = ledger.unproven_reasons(observer);
  const json epsilon = reasons.empty() ? json{{"min", 0.0}, {"median", 0.0}, {"max", 0.0}} : json(nullptr);
  return {{"observer", observer},
          {"claimed_epsilon", epsilon},
          {"proven_epsilon", epsilon},
          {"why_unproven", reasons.empty() ? json(nullptr) : json(join(reasons, "; "))}};
}

json privacy_section(const config::RunSpec& spec, const privacy::Ledger& ledger) {
  const std::string declared = spec.privacy ? spec.privacy->observer : "server";
  const json row = observer_row(ledger, declared);
  return {{"delta", spec.privacy ? json(spec.privacy->delta) : json(nullptr)},
          {"adjacency", spec.privacy ? json(spec.privacy->adjacency) : json(nullptr)},
          {"unit", spec.privacy ? json(spec.privacy->unit) : json(nullptr)},
          {"observer", declared},
          {"claimed_epsilon", row["claimed_epsilon"]},
          {"proven_epsilon", row["proven_epsilon"]},
          {"why_unproven", row["why_unproven"]},
          {"observers", json::array({row})}};
}

}  // namespace

json make_summary(const config::RunSpec& spec, const std::vector<json>& rounds, const privacy::Ledger& ledger) {
  double seconds = 0.0;
  double samples = 0.0;
  int64_t diverged = 0;
  for (const json& round : rounds) {
    seconds += round["seconds"].get<double>();
    samples += round["samples"].get<double>();
    diverged += static_cast<int64_t>(round["diverged"].size());
  }
  json summary = rounds.back()["evaluation"];
  summary["rounds"] = spec.rounds;
  summary["seconds"] = seconds;
  summary["samples_per_second"] = seconds > 0 ? samples / seconds : 0.0;
  summary["diverged_steps"] = diverged;
  summary["privacy"] = privacy_section(spec, ledger);
  summary["config_hash"] = spec.hash();
  summary["noise"] = "none";
  summary["name"] = spec.name;
  summary["seed"] = spec.seed;
  summary["dataset"] = spec.data.name;
  summary["model"] = spec.model.name;
  summary["method"] = spec.method;
  summary["variant"] = spec.variant;
  return summary;
}

}  // namespace sotto::artifacts
