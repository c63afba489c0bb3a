#include "audit/family.h"

#include "base/error.h"
#include "privacy/accounting/pld.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace sotto::audit {
namespace {

using privacy::Direction;
using privacy::Steps;

constexpr double kMostFactor = 256;   // of the noise, up or down
constexpr double kPrecision = 0.005;  // of the noise, relative
constexpr int kPoints = 8;            // at which a curve is looked at, beside the first two
constexpr double kLargestEpsilon = 12;
// Certified ε are upper bounds, and this tight.
constexpr double kTightness = 1e-4;

std::vector<Steps> with_noise(std::span<const Steps> steps, double factor) {
  std::vector<Steps> scaled(steps.begin(), steps.end());
  for (Steps& each : scaled) each.step.noise_multiplier *= factor;
  return scaled;
}

// One of the two families of inequalities: 1 - q ≤ e^ε p + δ(ε).
struct Side {
  Direction direction;
  double p = 1;
  double q = 1;
};

// The most by which rates violate them at some ε ≥ 0; or as soon as something is found, that. The excess is concave in
// e^ε, so that it has one summit.
double excess(std::span<const Steps> steps, const Side& side, bool any_will_do) {
  const auto at = [&](double epsilon) {
    return 1 - side.q - std::exp(epsilon) * side.p - std::exp(privacy::pld_log_delta(steps, side.direction, epsilon));
  };
  // Further up, e^ε p alone is more than 1.
  double low = 0, high = std::min(kLargestEpsilon, -std::log(side.p));
  const double golden = (std::sqrt(5.0) - 1) / 2;
  double left = high - golden * (high - low), right = low + golden * (high - low);
  double at_left = at(left), at_right = at(right);
  double most = std::max(at_left, at_right);
  for (int i = 0; i < kPoints && !(any_will_do && most > 0); ++i) {
    if (at_left > at_right) {
      high = right;
      right = left;
      at_right = at_left;
      left = high - golden * (high - low);
      at_left = at(left);
    } else {
      low = left;
      left = right;
      at_left = at_right;
      right = low + golden * (high - low);
      at_right = at(right);
    }
    most = std::max({most, at_left, at_right});
  }
  return most;
}

}  // namespace

double epsilon_by_family(std::span<const Steps> steps, const ErrorRates& limits, double delta) {
  SOTTO_INVARIANT(!steps.empty() && std::all_of(steps.begin(), steps.end(), [](const Steps& each) {
    return each.step.kind == privacy::Step::Kind::kGaussian;
  }));
  // No better than chance.
  if (limits.false_positive + limits.false_negative >= 1) return 0;
  // Which direction says more hardly depends on the noise.
  const Side with_first{Direction::kRemove, limits.false_positive, limits.false_negative},
      without_first{Direction::kAdd, limits.false_negative, limits.false_positive};
  const Side side =
      excess(steps, with_first, false) >= excess(steps, without_first, false) ? with_first : without_first;
  const auto excludes = [&](double factor) { return excess(with_noise(steps, factor), side, true) > 0; };
  double excluded = 1;
  while (!excludes(excluded)) {
    excluded *= 2;
    if (excluded > kMostFactor) return 0;
  }
  double possible = excluded / 2;
  while (excluded <= 1 && possible >= 1 / kMostFactor && excludes(possible)) {
    excluded = possible;
    possible /= 2;
  }
  while (excluded > possible * (1 + kPrecision)) {
    const double middle = std::sqrt(excluded * possible);
    (excludes(middle) ? excluded : possible) = middle;
  }
  return privacy::pld_epsilon(with_noise(steps, excluded), delta) * (1 - kTightness);
}

}  // namespace sotto::audit
