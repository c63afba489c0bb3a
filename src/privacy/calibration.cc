#include "privacy/calibration.h"

#include "base/error.h"
#include "privacy/accounting/calibrate.h"
#include "privacy/accounting/pld.h"
#include "privacy/accounting/proven.h"

#include <cmath>
#include <map>
#include <mutex>
#include <tuple>

namespace sotto::privacy {
namespace {

constexpr double kKeptDelta = 0.999;

// The ledger rounds a multiplier's 40th bit down.
constexpr double kLedgerRounding = 1e-9;
constexpr double kRatePrecision = 3e-4;

double largest_rate(double epsilon, double delta, int64_t steps, double noise_multiplier, Adjacency adjacency) {
  const auto composed = [&](double log_rate) {
    return Steps{Step::gaussian(noise_multiplier, std::exp(log_rate), adjacency), steps};
  };
  const auto affordable = [&](double log_rate) {
    const Steps all = composed(log_rate);
    return proven_epsilon({&all, 1}, delta) <= epsilon * (1 - kLedgerRounding);
  };
  if (affordable(0.0)) return 1.0;
  const double least = std::log(delta / static_cast<double>(steps)) - 1;
  double low = least;
  double high = 0;
  while (high - low > 1e-2) {
    const double middle = (low + high) / 2;
    const Steps all = composed(middle);
    (guess_epsilon({&all, 1}, delta) <= epsilon ? low : high) = middle;
  }
  // The guess may be wrong on either side.
  for (double step = 0.01; !affordable(low); step *= 2) {
    high = low;
    low = std::max(low - step, least - step);
  }
  for (double step = 0.01; high < 0 && affordable(high); step *= 2) {
    low = high;
    high = std::min(high + step, 0.0);
  }
  while (high - low > kRatePrecision) {
    const double middle = (low + high) / 2;
    (affordable(middle) ? low : high) = middle;
  }
  return std::exp(low);
}

}  // namespace

double noise_multiplier_for(double epsilon, double delta, int64_t steps, double sampling_rate, Adjacency adjacency) {
  static std::mutex mutex;
  static std::map<std::tuple<double, double, int64_t, double, Adjacency>, double> known;
  const std::tuple key(epsilon, delta, steps, sampling_rate, adjacency);
  const std::lock_guard lock(mutex);
  const auto found = known.find(key);
  if (found != known.end()) return found->second;
  const Method method = sampling_rate < 1 ? Method::kPld : Method::kExact;
  const double value =
      calibrate({epsilon, delta * kKeptDelta, method}, Step::gaussian(1.0, sampling_rate, adjacency), steps);
  return known[key] = value;
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
  return known[key] = largest_rate(epsilon, delta * kKeptDelta, steps, noise_multiplier, adjacency);
}

std::optional<double> printed_noise_multiplier(double epsilon, double delta, int64_t steps) {
  constexpr double kLargestOrder = 64;
  if (epsilon * (kLargestOrder - 1) <= -std::log(delta) * (1 + 1e-6)) return std::nullopt;
  return calibrate({epsilon, delta, Method::kRdpPaper}, Step::gaussian(1.0), steps);
}

}  // namespace sotto::privacy
