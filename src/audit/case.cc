#include "audit/case.h"

#include "base/json_number.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>

namespace sotto::audit {

std::string to_text(Verdict verdict) {
  switch (verdict) {
    case Verdict::kConsistent:
      return "consistent";
    case Verdict::kRefuted:
      return "claim refuted";
    case Verdict::kBroken:
      break;
  }
  return "proof refuted";
}

double Outcome::epsilon() const {
  const Bounds& bounds = finding.bounds;
  return audited.gaussian ? std::max(bounds.epsilon, bounds.epsilon_by_curve(audited.delta)) : bounds.epsilon;
}

Verdict Outcome::verdict() const {
  if (epsilon() > audited.proven) return Verdict::kBroken;
  return epsilon() > audited.claimed ? Verdict::kRefuted : Verdict::kConsistent;
}

nlohmann::json Outcome::to_json() const {
  const Bounds& bounds = finding.bounds;
  nlohmann::json value = {
      {"name", audited.name},
      {"what", audited.what},
      {"observer", audited.observer},
      {"delta", audited.delta},
      {"claimed_epsilon", number_or_null(audited.claimed)},
      {"proven_epsilon", number_or_null(audited.proven)},
      {"audited_epsilon", epsilon()},
      {"by_counting", bounds.epsilon},
      {"by_curve", audited.gaussian ? nlohmann::json(bounds.epsilon_by_curve(audited.delta)) : nlohmann::json(nullptr)},
      {"mu", bounds.mu},
      {"fitted_mu", bounds.fitted_mu ? nlohmann::json(*bounds.fitted_mu) : nlohmann::json(nullptr)},
      {"fit_error", bounds.fit_error},
      {"statistic", finding.statistic},
      {"trials", bounds.trials},
      {"seconds", seconds},
      {"verdict", to_text(verdict())}};
  if (!audited.variant.empty()) value["variant"] = audited.variant;
  return value;
}

Outcome audit(const Case& subject, TrialOptions options) {
  const auto start = std::chrono::steady_clock::now();
  options.delta = subject.delta;
  Outcome outcome{.audited = subject, .finding = tell_apart(subject.make_draw, options)};
  outcome.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return outcome;
}

}  // namespace sotto::audit
