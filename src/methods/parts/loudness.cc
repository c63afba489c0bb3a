#include "methods/parts/loudness.h"

#include <cmath>

namespace sotto::methods {
namespace {

constexpr double kSmall = 0.1;
constexpr double kDominant = 0.5;

}  // namespace

Loudness loudness(const privacy::NoiseReach& reach) {
  Loudness l;
  l.per_coordinate = reach.noise_stddev / reach.bound;
  l.in_norm = l.per_coordinate * std::sqrt(static_cast<double>(reach.coordinates));
  l.over_run = l.in_norm / std::sqrt(reach.summands);
  l.verdict = l.over_run < kSmall      ? "noise is small"
              : l.over_run < kDominant ? "noise is noticeable"
                                       : "noise dominates";
  return l;
}

}  // namespace sotto::methods
