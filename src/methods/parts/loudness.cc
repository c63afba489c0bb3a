#include "methods/parts/loudness.h"

#include <cmath>

namespace sotto::methods {
namespace {

constexpr double kUseful = 0.1;
constexpr double kMarginal = 0.5;

}  // namespace

Loudness loudness(const privacy::NoiseReach& reach) {
  Loudness l;
  l.per_coordinate = reach.noise_stddev / reach.bound;
  l.in_norm = l.per_coordinate * std::sqrt(static_cast<double>(reach.coordinates));
  l.over_run = l.in_norm / std::sqrt(reach.summands);
  l.verdict = l.over_run < kUseful ? "useful" : l.over_run < kMarginal ? "marginal" : "drowned";
  return l;
}

}  // namespace sotto::methods
