#include "artifacts/privacy_section.h"

#include "base/statistics.h"
#include "base/text.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

namespace sotto::artifacts {
namespace {

using privacy::Guarantee;

constexpr double kAnyDelta = 1e-5;

// Nothing if somebody has no finite ε.
std::optional<EpsilonSpread> spread(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  if (values.empty() || !std::isfinite(values.back())) return std::nullopt;
  return EpsilonSpread{.min = values.front(), .median = quantile(values, 0.5), .max = values.back()};
}

SpentAgainst spent_against(const config::RunSpec& spec, const privacy::Ledger& ledger, const std::string& observer) {
  std::vector<double> claimed, proven;
  std::set<std::string> reasons;
  for (const Guarantee& client : privacy::guarantees(ledger, observer, spec.data.clients, accounted_delta(spec))) {
    claimed.push_back(client.claimed);
    proven.push_back(client.proven);
    reasons.insert(client.why_unproven.begin(), client.why_unproven.end());
  }
  SpentAgainst spent = {.observer = observer, .claimed = spread(claimed), .proven = spread(proven)};
  if (!spent.proven) {
    spent.why_unproven = reasons.empty() ? "the noise's finite precision alone exceeds δ"
                                         : join(std::vector<std::string>(reasons.begin(), reasons.end()), "; ");
  }
  return spent;
}

bool samples_cohorts(const config::RunSpec& spec) {
  const methods::FederationOptions& federation = spec.federation;
  return methods::hides_cohorts(federation.sampling) && federation.cohort != 0 &&
         federation.cohort != spec.data.clients;
}

std::string basis_why(const config::RunSpec& spec, const std::string& generator) {
  return privacy::why_simulated(privacy::basis_of(generator), samples_cohorts(spec));
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

nlohmann::json basis_fields(const config::RunSpec& spec, const std::string& generator) {
  const std::string why = basis_why(spec, generator);
  return {{"basis", settings::word(privacy::basis_of(generator))},
          {"basis_why", why.empty() ? nlohmann::json(nullptr) : nlohmann::json(why)}};
}

PrivacySummary privacy_summary(const config::RunSpec& spec, const privacy::Ledger& ledger) {
  PrivacySummary summary = {.declared = spent_against(spec, ledger, declared_observer(spec)),
                            .basis = privacy::basis_of(ledger.generator()),
                            .basis_why = basis_why(spec, ledger.generator()),
                            .ledger = privacy::LedgerEnd{.rows = ledger.rows(), .head = ledger.head()}};
  if (spec.privacy) {
    summary.delta = spec.privacy->delta;
    summary.adjacency = settings::word(spec.privacy->adjacency);
    summary.unit = settings::word(spec.privacy->unit);
  }
  for (const std::string& observer : settings::words<privacy::Observer>()) {
    summary.observers.push_back(spent_against(spec, ledger, observer));
  }
  return summary;
}

}  // namespace sotto::artifacts
