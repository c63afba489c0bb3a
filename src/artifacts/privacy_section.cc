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
  for (const Guarantee& client : privacy::guarantees(ledger, observer, spec.data.clients, accounted_delta(spec))) {
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

bool samples_cohorts(const config::RunSpec& spec) {
  const methods::FederationOptions& federation = spec.federation;
  return federation.sampling == methods::CohortSampling::kPoisson && federation.cohort != 0 &&
         federation.cohort != spec.data.clients;
}

}  // namespace

std::string declared_observer(const config::RunSpec& spec) {
  return settings::word(spec.privacy ? spec.privacy->observer : privacy::Observer::kServer);
}

double accounted_delta(const config::RunSpec& spec) {
  return spec.privacy ? spec.privacy->delta : kAnyDelta;
}

privacy::Spending declared_spending(const config::RunSpec& spec) {
  return {declared_observer(spec), accounted_delta(spec)};
}

json basis_fields(const config::RunSpec& spec, const std::string& generator) {
  const privacy::Basis basis = privacy::basis_of(generator);
  const std::string why = privacy::why_simulated(basis, samples_cohorts(spec));
  return {{"basis", settings::word(basis)}, {"basis_why", why.empty() ? json(nullptr) : json(why)}};
}

privacy::Basis basis_in(const json& summary) {
  const json& section = summary["privacy"];
  if (section.contains("basis")) return settings::from_word<privacy::Basis>(section["basis"].get<std::string>());
  return privacy::basis_of(summary.value("noise", settings::word(privacy::Generator::kReplay)));
}

json privacy_section(const config::RunSpec& spec, const privacy::Ledger& ledger) {
  json section = observer_row(spec, ledger, declared_observer(spec));
  section.update(basis_fields(spec, ledger.generator()));
  section["delta"] = spec.privacy ? json(spec.privacy->delta) : json(nullptr);
  section["adjacency"] = spec.privacy ? json(settings::word(spec.privacy->adjacency)) : json(nullptr);
  section["unit"] = spec.privacy ? json(settings::word(spec.privacy->unit)) : json(nullptr);
  section["observers"] = json::array();
  for (const std::string& observer : settings::words<privacy::Observer>()) {
    section["observers"].push_back(observer_row(spec, ledger, observer));
  }
  section["ledger_rows"] = ledger.rows();
  section["ledger_head"] = ledger.head();
  return section;
}

}  // namespace sotto::artifacts
