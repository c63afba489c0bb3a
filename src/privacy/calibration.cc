#include "privacy/calibration.h"

#include "privacy/accounting/calibrate.h"

#include <cmath>
#include <map>
#include <mutex>
#include <tuple>

namespace sotto::privacy {
namespace {

constexpr double kKeptDelta = 0.999;

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

std::optional<double> printed_noise_multiplier(double epsilon, double delta, int64_t steps) {
  constexpr double kLargestOrder = 64;
  if (epsilon * (kLargestOrder - 1) <= -std::log(delta) * (1 + 1e-6)) return std::nullopt;
  return calibrate({epsilon, delta, Method::kRdpPaper}, Step::gaussian(1.0), steps);
}

}  // namespace sotto::privacy
