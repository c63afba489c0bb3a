#include "audit/case.h"

#include "audit/family.h"
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

std::string to_text(Ground ground) {
  switch (ground) {
    case Ground::kCounting:
      return "counting";
    case Ground::kCurve:
      return "curve";
    case Ground::kFamily:
      break;
  }
  return "family";
}

double Outcome::epsilon() const {
  const Bounds& bounds = finding.bounds;
  const double by_curve = audited.gaussian ? bounds.epsilon_by_curve(audited.delta) : 0.0;
  return std::max({bounds.epsilon, by_curve, by_family});
}

Ground Outcome::ground() const {
  if (finding.bounds.epsilon >= epsilon()) return Ground::kCounting;
  return by_family >= epsilon() ? Ground::kFamily : Ground::kCurve;
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
      {"by_family", audited.family.empty() ? nlohmann::json(nullptr) : nlohmann::json(by_family)},
      {"ground", to_text(ground())},
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
  if (!subject.family.empty()) {
    outcome.by_family = epsilon_by_family(subject.family, outcome.finding.bounds.limits, subject.delta);
  }
  outcome.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return outcome;
}

}  // namespace sotto::audit
