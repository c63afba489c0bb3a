#include "privacy/calibration.h"

#include "privacy/accounting/accountant.h"

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
  const double value = calibrate_gaussian(epsilon, delta * kKeptDelta, steps, sampling_rate, adjacency);
  return known[key] = value;
}

}  // namespace sotto::privacy
