#include "privacy/accounting/saddle.h"

#include <boost/math/tools/roots.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace sotto::privacy {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kLeastTilt = 1e-8;
constexpr double kMostTilt = 1e12;
// ln of the relative size below which a contribution is left out.
constexpr double kNegligible = -30;
constexpr int kMostTerms = 200'000;

// How far apart the terms of the trapezoidal sum may be: sums at spacing 2π/period add the values of the tilted curve
// at multiples of the period, which fall at least like e^{-λ·period} below ε and like the tail above it.
double period_of(const ComposedLoss& loss, double epsilon, double tilt, double log_delta) {
  const Cumulant tilted = loss.cumulant(tilt);
  const double by_decay = (-kNegligible - log_delta) / tilt;
  const double by_width = 16 * std::sqrt(tilted.variance) + 8 / tilt + std::abs(tilted.mean - epsilon);
  double above = 0;
  for (double reach = std::sqrt(tilted.variance) + 1e-12;; reach *= 1.3) {
    const double top = epsilon + reach;
    above = reach;
    if (top >= loss.largest()) break;
    const double higher = loss.saddle_point(top);
    if (loss.cumulant(higher).value - higher * top < log_delta + kNegligible) break;
  }
  return std::max(above, std::min(by_decay, std::max(by_width * 4, above * 2)));
}

}  // namespace

ComposedLoss::ComposedLoss(std::span<const Steps> steps, Direction direction, double tail_mass)
    : steps_(steps.begin(), steps.end()), direction_(direction), tail_mass_(tail_mass) {
  double log_kept = 0;
  for (const Steps& entry : steps_) {
    const double count = static_cast<double>(entry.count);
    const bool seen = direction == Direction::kRemove || is_symmetric(entry.step);
    largest_ += count * (seen ? largest_loss(entry.step) : -std::log1p(-entry.step.sampling_rate));
    if (entry.step.kind == Step::Kind::kApproximate && seen) {
      log_kept += count * std::log1p(-entry.step.sampling_rate * entry.step.delta);
    }
  }
  revealed_ = -std::expm1(log_kept);
}

void ComposedLoss::prepare(double tilt, double frequency) const {
  if (!nodes_.empty() && tilt <= max_tilt_ && frequency <= max_frequency_) return;
  if (tilt > max_tilt_) max_tilt_ = 2 * tilt + 1;
  if (frequency > max_frequency_) max_frequency_ = frequency;
  nodes_.clear();
  for (const Steps& entry : steps_)
    nodes_.push_back(loss_nodes(entry.step, direction_, {max_tilt_, max_frequency_, tail_mass_}));
}

Cumulant ComposedLoss::cumulant(double tilt) const {
  prepare(tilt, 0);
  Cumulant sum;
  for (size_t i = 0; i < steps_.size(); ++i) {
    const Cumulant one = privacy::cumulant(nodes_[i], tilt);
    const double count = static_cast<double>(steps_[i].count);
    sum.value += count * one.value;
    sum.mean += count * one.mean;
    sum.variance += count * one.variance;
  }
  return sum;
}

std::complex<double> ComposedLoss::complex_cumulant(std::complex<double> z, double max_frequency) const {
  prepare(z.real(), max_frequency);
  std::complex<double> sum = 0;
  for (size_t i = 0; i < steps_.size(); ++i) {
    sum += static_cast<double>(steps_[i].count) * privacy::complex_cumulant(nodes_[i], z);
  }
  return sum;
}

double ComposedLoss::saddle_point(double epsilon) const {
  const auto slope = [&](double log_tilt) {
    const double tilt = std::exp(log_tilt);
    return cumulant(tilt).mean - epsilon - 1 / tilt - 1 / (1 + tilt);
  };
  double low = 0;
  while (slope(low) > 0 && low > std::log(kLeastTilt)) low -= 1.5;
  double high = low + 1.5;
  while (slope(high) < 0 && high < std::log(kMostTilt)) high += 1.5;
  if (low <= std::log(kLeastTilt)) return kLeastTilt;
  if (high >= std::log(kMostTilt)) return kMostTilt;
  std::uintmax_t iterations = 60;
  const auto root =
      boost::math::tools::toms748_solve(slope, low, high, boost::math::tools::eps_tolerance<double>(16), iterations);
  return std::exp((root.first + root.second) / 2);
}

SaddleEstimate saddle_log_delta(const ComposedLoss& loss, double epsilon) {
  if (epsilon >= loss.largest()) return {-kInfinity, 0};
  const double tilt = loss.saddle_point(epsilon);
  const Cumulant at = loss.cumulant(tilt);
  const double log_peak = at.value - tilt * epsilon - std::log(tilt) - std::log1p(tilt);
  const double curvature = at.variance + 1 / (tilt * tilt) + 1 / ((1 + tilt) * (1 + tilt));
  const double rough = log_peak - 0.5 * std::log(2 * std::numbers::pi * curvature);
  const double spacing = 2 * std::numbers::pi / period_of(loss, epsilon, tilt, rough);

  double max_frequency = 8 / std::sqrt(curvature);
  double sum = 0.5;  // relative to the integrand at w = 0
  double largest_recent = 1;
  for (int j = 1; j < kMostTerms; ++j) {
    const double w = spacing * j;
    while (w > max_frequency) max_frequency *= 2;
    const std::complex<double> z(tilt, w);
    const std::complex<double> value =
        std::exp(loss.complex_cumulant(z, max_frequency) - at.value - std::complex<double>(0, w * epsilon)) *
        (tilt * (1 + tilt)) / (z * (z + 1.0));
    sum += value.real();
    largest_recent = std::max(std::abs(value), 0.9 * largest_recent);
    if (largest_recent < std::exp(kNegligible)) break;
  }
  return {std::min(0.0, log_peak + std::log(sum * spacing / std::numbers::pi)), tilt};
}

SaddleEpsilon saddle_epsilon(const ComposedLoss& loss, double delta) {
  const double finite = delta - loss.revealed();
  if (!(finite > 0)) return {kInfinity, 0};
  const double target = std::log(finite);
  const auto excess = [&](double epsilon) { return saddle_log_delta(loss, epsilon).log_delta - target; };
  if (excess(0) <= 0) return {0, loss.saddle_point(0)};
  double low = 0;
  double high = std::max(1e-6, loss.cumulant(kLeastTilt).mean);
  while (high < loss.largest() && excess(high) > 0) {
    low = high;
    high *= 2;
  }
  high = std::min(high, loss.largest());
  std::uintmax_t iterations = 60;
  const auto bounded = [&](double epsilon) { return std::max(excess(epsilon), -1e4); };
  const auto root =
      boost::math::tools::toms748_solve(bounded, low, high, boost::math::tools::eps_tolerance<double>(40), iterations);
  const double epsilon = (root.first + root.second) / 2;
  return {epsilon, loss.saddle_point(epsilon)};
}

}  // namespace sotto::privacy
