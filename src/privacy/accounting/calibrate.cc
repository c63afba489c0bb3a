#include "privacy/accounting/calibrate.h"

#include "base/error.h"
#include "privacy/accounting/gaussian.h"
#include "privacy/accounting/pld.h"

#include <boost/math/tools/roots.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace sotto::privacy {
namespace {

constexpr double kLeast = 1e-4;
constexpr double kMost = 1e12;
constexpr double kTooMuch = 1e300;
constexpr double kLeastEpsilon = 1e-9;
constexpr double kMostEpsilon = 1e8;

void require_possible(const CalibrationTarget& target, const Step& shape, int64_t count) {
  if (!(std::isfinite(target.epsilon) && target.epsilon > 0)) {
    fail_user("the target epsilon must be a finite number above 0, not {}", target.epsilon);
  }
  if (target.epsilon < kLeastEpsilon || target.epsilon > kMostEpsilon) {
    fail_user("the target epsilon must be between {} and {}, not {}", kLeastEpsilon, kMostEpsilon, target.epsilon);
  }
  require_valid_delta(target.delta);
  if (shape.kind != Step::Kind::kGaussian && shape.kind != Step::Kind::kLaplace &&
      shape.kind != Step::Kind::kCohortGaussian) {
    fail_user("only gaussian and laplace noise can be calibrated, not a {} step", to_text(shape.kind));
  }
  if (count < 1) fail_user("the number of steps to calibrate must be at least 1, not {}", count);
  Steps plan{shape, count};
  plan.step.noise_multiplier = 1;
  require_valid({&plan, 1});
  if (target.method == Method::kSaddle) fail_user("saddle is an estimate and proves no multiplier: use pld");
}

// Certified answers take time and are good to 3e-5: a few secant steps in ln ε against ln z, which is nearly straight,
// until the spent ε is at most the target and within 4e-5 of it. `low` spends too much, `high` does not.
template <typename F>
double refine_certified(const F& spent, double target, double low, double high) {
  const auto excess = [&](double x) { return std::log(std::clamp(spent(std::exp(x)), 1e-300, kTooMuch) / target); };
  double low_value = excess(low);
  double high_value = excess(high);
  for (int i = 0; i < 12 && high - low > 1e-6 && high_value < -4e-5; ++i) {
    const double aim = -2e-5;
    double next = low + (high - low) * (low_value - aim) / (low_value - high_value);
    const double margin = 0.02 * (high - low);
    if (i % 4 == 3) next = (low + high) / 2;
    next = std::clamp(next, low + std::min(margin, 1e-6), high - std::min(margin, 1e-6));
    const double value = excess(next);
    (value <= 0 ? high : low) = next;
    (value <= 0 ? high_value : low_value) = value;
  }
  return std::exp(high);
}

// ln of a multiplier that would spend about the target, if the quick guess is right.
double first_probe(const CalibrationTarget& target, const Step& shape, int64_t count, std::span<const Steps> others) {
  const double scale = std::log(std::sqrt(static_cast<double>(count)) * shape.sampling_rate / target.epsilon + 0.3);
  if (target.method != Method::kPld) return scale;
  std::vector<Steps> plan(others.begin(), others.end());
  plan.push_back({shape, count});
  double low = scale - 8;
  double high = scale + 8;
  while (high - low > 1e-3) {
    plan.back().step.noise_multiplier = std::exp((low + high) / 2);
    (guess_epsilon(plan, target.delta) > target.epsilon ? low : high) = (low + high) / 2;
  }
  return high;
}

}  // namespace

double calibrate(const CalibrationTarget& target, const Step& shape, int64_t count, std::span<const Steps> others) {
  require_possible(target, shape, count);
  const auto spent = [&](double multiplier) {
    const auto accountant = make_accountant(target.method);
    for (const Steps& entry : others) accountant->compose(entry.step, entry.count);
    Step step = shape;
    step.noise_multiplier = multiplier;
    accountant->compose(step, count);
    return accountant->epsilon(target.delta);
  };
  if (target.method == Method::kClassical) {
    if (target.epsilon > 1) {
      fail_user("the classical rule is proved for epsilon up to 1 only, not for {}: use exact", target.epsilon);
    }
    const double multiplier = std::sqrt(2 * std::log(1.25 / target.delta)) / target.epsilon * (1 + 2e-15);
    spent(multiplier);
    return multiplier;
  }
  // A closed form, checked below like any other candidate.
  if (others.empty() && !shape.sampled() && shape.kind == Step::Kind::kGaussian && target.method == Method::kExact) {
    const double exact = std::sqrt(static_cast<double>(count)) / gaussian_mu(target.epsilon, target.delta);
    for (int attempt = 0; attempt < 10; ++attempt) {
      const double candidate = exact * (1 + std::ldexp(1e-15, 2 * attempt));
      if (spent(candidate) <= target.epsilon) return candidate;
    }
  }

  const bool any_target = others.empty() && (target.method == Method::kPld || target.method == Method::kExact);
  const double floor = any_target ? 0 : spent(kMost);
  if (floor > target.epsilon) {
    fail_user("no amount of noise gives epsilon {} at delta {} by {}: it cannot certify less than {:.6g} here",
              target.epsilon, target.delta, to_text(target.method), floor);
  }
  double low = 0;
  double high = 0;
  const double probe = first_probe(target, shape, count, others);
  double step = target.method == Method::kPld ? 0.01 : 0.4;
  if (spent(std::exp(probe)) > target.epsilon) {
    low = probe;
    while (spent(std::exp(high = std::min(low + step, std::log(kMost)))) > target.epsilon) {
      low = high;
      step *= 4;
    }
  } else {
    high = probe;
    while (spent(std::exp(low = high - step)) <= target.epsilon) {
      high = low;
      step *= 4;
      if (low < std::log(kLeast)) return std::exp(high);
    }
  }
  if (target.method == Method::kPld) {
    return refine_certified(spent, target.epsilon, low, high);
  }
  // In ln ε against ln z the relation is nearly straight. The answer is always on the side
  // on which the method itself agrees.
  const auto excess = [&](double log_multiplier) {
    const double epsilon = std::clamp(spent(std::exp(log_multiplier)), 1e-300, kTooMuch);
    const double value = std::log(epsilon / target.epsilon);
    if (value <= 0) high = std::min(high, log_multiplier);
    return value;
  };
  std::uintmax_t iterations = 80;
  boost::math::tools::toms748_solve(excess, low, high, boost::math::tools::eps_tolerance<double>(42), iterations);
  return std::exp(high);
}

}  // namespace sotto::privacy
