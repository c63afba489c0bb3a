#include "privacy/calibration.h"

#include "base/error.h"
#include "privacy/accounting/calibrate.h"
#include "privacy/accounting/gaussian.h"
#include "privacy/accounting/pld.h"
#include "privacy/accounting/proven.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>
#include <tuple>
#include <vector>

namespace sotto::privacy {
namespace {

constexpr double kKeptDelta = 0.999;
// Budgets above this promise nothing: amplification is not worth its computation.
constexpr double kLargestAmplified = 100;

// The ledger rounds a multiplier's 40th bit down.
constexpr double kLedgerRounding = 1e-9;
constexpr double kRatePrecision = 5e-4;

// Where the quick guess says that the budget is spent, as ln of a rate.
double guessed_log_rate(double epsilon, double delta, const Step& shape, int64_t steps) {
  double low = std::log(delta / static_cast<double>(steps));
  double high = 0;
  while (high - low > 1e-3) {
    Steps all{shape, steps};
    all.step.sampling_rate = std::exp((low + high) / 2);
    (guess_epsilon({&all, 1}, delta) <= epsilon ? low : high) = (low + high) / 2;
  }
  return low;
}

// Certified answers take time: a few secant steps in ln ε against ln q, until the spent ε is at most the budget and
// near it. The slope is about 1, or some more where a single participation would cost more than the budget.
double largest_rate(double epsilon, double delta, const Step& shape, int64_t steps) {
  constexpr double kLongestStride = 2.5;
  const auto excess = [&](double log_rate) {
    Steps all{shape, steps};
    all.step.sampling_rate = std::exp(log_rate);
    return std::log(std::clamp(proven_epsilon({&all, 1}, delta), 1e-300, 1e300) / (epsilon * (1 - kLedgerRounding)));
  };
  if (excess(0.0) <= 0) return 1.0;
  struct Probe {
    double at = 0;
    double excess = 0;
  };
  std::optional<Probe> low;
  std::optional<Probe> high;
  double next = guessed_log_rate(epsilon, delta, shape, steps);
  for (int i = 0;; ++i) {
    const Probe probe{next, excess(next)};
    (probe.excess <= 0 ? low : high) = probe;
    if (!low) {
      next = probe.at - std::clamp(probe.excess, kRatePrecision, kLongestStride);
    } else if (low->excess > -kRatePrecision || (high ? high->at : 0.0) - low->at < kRatePrecision) {
      return std::exp(low->at);
    } else if (!high) {
      next = std::min(0.0, probe.at + std::clamp(-probe.excess, kRatePrecision, kLongestStride));
      if (next == 0.0) next = probe.at / 2;
    } else if (low->excess < -kLongestStride || i % 4 == 3) {
      next = (low->at + high->at) / 2;
    } else {
      const double aim = -kRatePrecision / 2;
      next = low->at + (high->at - low->at) * (aim - low->excess) / (high->excess - low->excess);
      next = std::clamp(next, low->at + kRatePrecision / 4, high->at - kRatePrecision / 4);
    }
  }
}

// Bisects in ln ε from a guess: that picks are as Gaussians of μ = ε/2.
double largest_pick_epsilon(double epsilon, double delta, int64_t picks, double noise_multiplier, int64_t steps) {
  constexpr double kPrecision = 5e-3;
  constexpr double kGridMargin = 1e-4;  // the ledger composes the same in other parts, on another grid
  const Steps others{Step::gaussian(noise_multiplier), steps};
  const auto is_within = [&](double log_pick) {
    const std::vector<Steps> all = {others, {Step::bounded_range(std::exp(log_pick)), picks}};
    return proven_epsilon(all, delta) <= epsilon * (1 - kGridMargin);
  };
  const double whole = gaussian_mu(epsilon, delta);
  const double squares = whole * whole - static_cast<double>(steps) / (noise_multiplier * noise_multiplier);
  if (!(squares > 1e-9 * whole * whole)) fail_user("a budget of ε = {} is used up before anything is picked", epsilon);
  double low = std::log(2 * std::sqrt(squares / static_cast<double>(picks)));
  double stride = 0.05;
  double high = low + stride;
  while (!is_within(low)) {
    high = low;
    low -= stride;
    stride *= 2;
    if (stride > 50) fail_user("a budget of ε = {} is used up before anything is picked", epsilon);
  }
  while (high - low <= stride && is_within(high)) {
    low = high;
    high += stride;
    stride *= 2;
  }
  while (high - low > kPrecision) {
    const double middle = (low + high) / 2;
    (is_within(middle) ? low : high) = middle;
  }
  return std::exp(low);
}

}  // namespace

double noise_multiplier_for(double epsilon, double delta, int64_t steps, double sampling_rate, Adjacency adjacency,
                            int64_t batches) {
  static std::mutex mutex;
  static std::map<std::tuple<double, double, int64_t, double, Adjacency, int64_t>, double> known;
  const std::tuple key(epsilon, delta, steps, sampling_rate, adjacency, batches);
  const std::lock_guard lock(mutex);
  const auto found = known.find(key);
  if (found != known.end()) return found->second;
  Step shape = Step::gaussian(1.0, sampling_rate, adjacency);
  shape.batches = epsilon < kLargestAmplified ? batches : 1;
  const auto least = [&](Method method) { return calibrate({epsilon, delta * kKeptDelta, method}, shape, steps); };
  double value = least(shape.amplified() ? Method::kPld : Method::kExact);
  if (shape.allocated()) {
    shape.batches = 1;
    value = std::min(value, least(Method::kExact));
  }
  return known[key] = value;
}

double cohort_noise_multiplier_for(double epsilon, double delta, int64_t steps, double share, Adjacency adjacency) {
  const double in_public = noise_multiplier_for(epsilon, delta, steps, 1, adjacency);
  if (!(share < 1) || epsilon >= kLargestAmplified) return in_public;
  static std::mutex mutex;
  static std::map<std::tuple<double, double, int64_t, double, Adjacency>, double> known;
  const std::tuple key(epsilon, delta, steps, share, adjacency);
  const std::lock_guard lock(mutex);
  const auto found = known.find(key);
  if (found != known.end()) return found->second;
  const double hidden =
      calibrate({epsilon, delta * kKeptDelta, Method::kPld}, Step::cohort(1.0, share, adjacency), steps);
  return known[key] = std::min(in_public, hidden);
}

double sampling_rate_for(double epsilon, double delta, int64_t steps, double noise_multiplier, Adjacency adjacency) {
  if (!(epsilon > 0) || !std::isfinite(epsilon)) fail_user("a budget must be a finite number above 0, not {}", epsilon);
  if (!(noise_multiplier > 0) || !std::isfinite(noise_multiplier)) {
    fail_user("a noise multiplier must be a finite number above 0, not {}", noise_multiplier);
  }
  if (steps < 1) fail_user("the number of steps must be at least 1, not {}", steps);
  require_valid_delta(delta);
  static std::mutex mutex;
  static std::map<std::tuple<double, double, int64_t, double, Adjacency>, double> known;
  const std::tuple key(epsilon, delta, steps, noise_multiplier, adjacency);
  const std::lock_guard lock(mutex);
  const auto found = known.find(key);
  if (found != known.end()) return found->second;
  return known[key] =
             largest_rate(epsilon, delta * kKeptDelta, Step::gaussian(noise_multiplier, 1.0, adjacency), steps);
}

double pick_epsilon_for(double epsilon, double delta, int64_t picks, double noise_multiplier, int64_t steps) {
  if (!(epsilon > 0) || !std::isfinite(epsilon)) fail_user("a budget must be a finite number above 0, not {}", epsilon);
  if (!(noise_multiplier > 0) || !std::isfinite(noise_multiplier)) {
    fail_user("a noise multiplier must be a finite number above 0, not {}", noise_multiplier);
  }
  if (picks < 1) fail_user("the number of picks must be at least 1, not {}", picks);
  require_valid_delta(delta);
  static std::mutex mutex;
  static std::map<std::tuple<double, double, int64_t, double, int64_t>, double> known;
  const std::tuple key(epsilon, delta, picks, noise_multiplier, steps);
  const std::lock_guard lock(mutex);
  const auto found = known.find(key);
  if (found != known.end()) return found->second;
  return known[key] = largest_pick_epsilon(epsilon, delta * kKeptDelta, picks, noise_multiplier, steps);
}

std::optional<double> printed_noise_multiplier(double epsilon, double delta, int64_t steps) {
  constexpr double kLargestOrder = 64;
  if (epsilon * (kLargestOrder - 1) <= -std::log(delta) * (1 + 1e-6)) return std::nullopt;
  return calibrate({epsilon, delta, Method::kRdpPaper}, Step::gaussian(1.0), steps);
}

}  // namespace sotto::privacy
