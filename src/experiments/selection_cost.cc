#include "experiments/selection_cost.h"

#include "artifacts/privacy_section.h"
#include "artifacts/run_directory.h"
#include "base/json_number.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace sotto::experiments {
namespace {

using nlohmann::json;
using privacy::Tally;

std::set<Tally> largest_of(const std::vector<Tally>& clients) {
  std::set<Tally> largest;
  for (const Tally& tally : std::set<Tally>(clients.begin(), clients.end())) {
    const auto covers = [&](const Tally& other) { return tally.within(other); };
    if (std::any_of(largest.begin(), largest.end(), covers)) continue;
    std::erase_if(largest, [&](const Tally& other) { return other.within(tally); });
    largest.insert(tally);
  }
  return largest;
}

// Of each client that released something, with what was released of everyone.
std::vector<Tally> spent_in(const Job& job, const std::string& observer) {
  const std::map<int64_t, Tally> tallies = artifacts::RunReader(job.folder).ledger()->tallies(observer);
  const auto everyone = tallies.find(privacy::kEveryone);
  std::vector<Tally> clients;
  for (const auto& [client, tally] : tallies) {
    Tally both = tally;
    if (client != privacy::kEveryone && everyone != tallies.end()) both.add(everyone->second);
    clients.push_back(std::move(both));
  }
  return clients;
}

std::optional<double> if_finite(double value) {
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

std::string why_not_comparable(const std::vector<const Job*>& finished) {
  const auto promises = [](const Job* job) { return job->spec.privacy.has_value(); };
  const auto without = finished.size() - static_cast<size_t>(std::count_if(finished.begin(), finished.end(), promises));
  if (without > 0) return fmt::format("{} of its {} runs have no [privacy]", without, finished.size());
  const privacy::PrivacyTerms& first = *finished.front()->spec.privacy;
  const bool alike = std::all_of(finished.begin(), finished.end(), [&](const Job* job) {
    const privacy::PrivacyTerms& terms = *job->spec.privacy;
    return terms.delta == first.delta && terms.observer == first.observer && terms.neighbours() == first.neighbours();
  });
  return alike ? "" : "its runs promise different things (δ, adjacency, unit or observer)";
}

}  // namespace

std::vector<privacy::TrialCost> alternatives(const std::vector<Tally>& clients) {
  std::vector<privacy::TrialCost> costs;
  for (const Tally& tally : largest_of(clients)) {
    costs.push_back({.steps = tally.steps(), .renyi_only = tally.renyi_only(), .slack = tally.slack()});
  }
  return costs;
}

std::optional<SelectionCost> selection_cost(const std::vector<Job>& jobs) {
  std::vector<const Job*> finished;
  bool any_private = false;
  for (const Job& job : jobs) {
    if (!job.summary) continue;
    finished.push_back(&job);
    any_private = any_private || job.spec.privacy.has_value();
  }
  if (finished.size() < 2 || !any_private) return std::nullopt;
  SelectionCost cost;
  cost.runs = static_cast<int64_t>(finished.size());
  cost.why_none = why_not_comparable(finished);
  if (!cost.why_none.empty()) return cost;
  cost.delta = finished.front()->spec.privacy->delta;
  cost.observer = settings::word(finished.front()->spec.privacy->observer);
  std::map<std::set<Tally>, int64_t> runs;
  std::vector<Tally> everything;
  for (const Job* job : finished) {
    cost.basis = privacy::weaker(cost.basis, job->summary->privacy.basis);
    const std::vector<Tally> spent = spent_in(*job, cost.observer);
    for (const Tally& tally : spent) {
      if (tally.why_unproven().empty()) continue;
      cost.why_none = "of one of its runs nothing can be proven: " + tally.why_unproven().front();
      return cost;
    }
    ++runs[largest_of(spent)];
    everything.insert(everything.end(), spent.begin(), spent.end());
  }
  std::vector<privacy::ShownRuns> shown;
  for (const auto& [tallies, times] : runs) {
    shown.push_back({alternatives(std::vector<Tally>(tallies.begin(), tallies.end())), times});
  }
  cost.all_epsilon = if_finite(privacy::all_runs_epsilon(shown, cost.delta));
  const auto law = privacy::TrialLaw::logarithmic(static_cast<double>(std::min<int64_t>(cost.runs, 1000)));
  cost.best_epsilon = if_finite(privacy::selection_epsilon(alternatives(everything), law, cost.delta));
  return cost;
}

json to_json(const SelectionCost& cost) {
  const auto or_null = [](const std::optional<double>& value) { return value ? json(*value) : json(nullptr); };
  if (!cost.why_none.empty()) return {{"runs", cost.runs}, {"why_none", cost.why_none}};
  return {{"runs", cost.runs},
          {"delta", cost.delta},
          {"observer", cost.observer},
          {"basis", settings::word(cost.basis)},
          {"all_epsilon", or_null(cost.all_epsilon)},
          {"best_epsilon", or_null(cost.best_epsilon)},
          {"best_law", "logarithmic"},
          {"score", "not counted: it is computed from the clients' records"},
          {"why_none", nullptr}};
}

}  // namespace sotto::experiments
