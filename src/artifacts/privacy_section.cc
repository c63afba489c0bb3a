#include "artifacts/privacy_section.h"

#include "base/statistics.h"
#include "base/text.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace sotto::artifacts {
namespace {

using nlohmann::json;
using privacy::Guarantee;

constexpr double kAnyDelta = 1e-5;

// min, median and max, or null if somebody has no finite ε.
json spread(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  if (values.empty() || !std::isfinite(values.back())) return nullptr;
  return {{"min", values.front()}, {"median", quantile(values, 0.5)}, {"max", values.back()}};
}

json observer_row(const config::RunSpec& spec, const privacy::Ledger& ledger, const std::string& observer) {
  std::vector<double> claimed, proven;
  std::set<std::string> reasons;
  for (const Guarantee& client : guarantees(ledger, observer, spec.data.clients, accounted_delta(spec))) {
    claimed.push_back(client.claimed);
    proven.push_back(client.proven);
    reasons.insert(client.why_unproven.begin(), client.why_unproven.end());
  }
  json row = {{"observer", observer}, {"claimed_epsilon", spread(claimed)}, {"proven_epsilon", spread(proven)}};
  row["why_unproven"] = nullptr;
  if (row["proven_epsilon"].is_null()) {
    row["why_unproven"] = reasons.empty() ? "the noise's finite precision alone exceeds δ"
                                          : join(std::vector<std::string>(reasons.begin(), reasons.end()), "; ");
  }
  return row;
}

}  // namespace

std::string declared_observer(const config::RunSpec& spec) {
  return settings::word(spec.privacy ? spec.privacy->observer : privacy::Observer::kServer);
}

double accounted_delta(const config::RunSpec& spec) {
  return spec.privacy ? spec.privacy->delta : kAnyDelta;
}

std::vector<Guarantee> guarantees(const privacy::Ledger& ledger, const std::string& observer, int64_t clients,
                                  double delta) {
  const std::map<int64_t, privacy::Tally> tallies = ledger.tallies(observer);
  const auto tally_of = [&](int64_t client) {
    const auto found = tallies.find(client);
    return found == tallies.end() ? privacy::Tally() : found->second;
  };
  const privacy::Tally everyone = tally_of(privacy::kEveryone);
  std::map<privacy::Tally, Guarantee> known;
  std::vector<Guarantee> result;
  for (int64_t client = 0; client < clients; ++client) {
    privacy::Tally spent = tally_of(client);
    spent.add(everyone);
    auto place = known.find(spent);
    if (place == known.end()) place = known.emplace(spent, spent.guarantee(delta)).first;
    result.push_back(place->second);
  }
  return result;
}

json privacy_section(const config::RunSpec& spec, const privacy::Ledger& ledger) {
  json section = observer_row(spec, ledger, declared_observer(spec));
  section["delta"] = spec.privacy ? json(spec.privacy->delta) : json(nullptr);
  section["adjacency"] = spec.privacy ? json(settings::word(spec.privacy->adjacency)) : json(nullptr);
  section["unit"] = spec.privacy ? json(settings::word(spec.privacy->unit)) : json(nullptr);
  section["observers"] = json::array();
  for (const std::string& observer : settings::words<privacy::Observer>()) {
    section["observers"].push_back(observer_row(spec, ledger, observer));
  }
  section["ledger_rows"] = ledger.rows();
  return section;
}

}  // namespace sotto::artifacts
