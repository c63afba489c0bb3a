#include "privacy/accounting/saddle.h"

#include "base/error.h"

#include <boost/math/tools/roots.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <optional>

namespace sotto::privacy {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kLeastTilt = 1e-8;
constexpr double kMostTilt = 1e12;
// ln of the relative size below which a contribution is left out.
constexpr double kNegligible = -30;
constexpr double kMostWork = 1e9;
constexpr double kMostEpsilon = 1000;

double log_add(double a, double b) {
  const double high = std::max(a, b);
  return high == -kInfinity ? high : high + std::log1p(std::exp(std::min(a, b) - high));
}

// Sums at spacing 2π/period add the tilted curve e^{λε}δ(ε) at distances that are multiples of the period: below it is
// at most e^{-λ·period}, above it is bounded by Chernoff at tilts λ + s.
double period_of(const ComposedLoss& loss, double epsilon, double tilt, double log_delta) {
  const Cumulant at = loss.cumulant(tilt);
  const double log_weight = log_delta - (at.value - tilt * epsilon);
  const double deviation = std::sqrt(at.variance) + 1e-300;
  double above = loss.largest() - epsilon;
  for (int i = 0; i < 23; ++i) {
    const double s = 0.02 * std::pow(1.4, i) / deviation;
    above = std::min(above, (loss.cumulant(tilt + s).value - at.value - kNegligible - log_weight) / s - epsilon);
  }
  return std::max(above, (-kNegligible - log_delta) / tilt);
}

// The integrand on an equidistant contour through λ, sampled once; the integral at any ε near the one it was made for,
// where ln δ is about `log_delta`.
class Contour {
 public:
  // Fails (see converged) if it would take more than kMostWork evaluations.
  Contour(const ComposedLoss& loss, double epsilon, double log_delta) : tilt_(loss.saddle_point(epsilon)) {
    const Cumulant at = loss.cumulant(tilt_);
    log_moment_ = at.value;
    const double curvature = at.variance + 1 / (tilt_ * tilt_) + 1 / ((1 + tilt_) * (1 + tilt_));
    const double least = std::min({rough_log_delta(loss, epsilon, tilt_), log_delta, 0.0});
    spacing_ = 2 * std::numbers::pi / period_of(loss, epsilon, tilt_, least);
    double work = 0;
    double size = 1;
    for (double limit = 8 / std::sqrt(curvature); size > std::exp(kNegligible); limit *= 2) {
      std::vector<LineOfMoments> lines = loss.moments_along(tilt_, limit);
      const auto first = static_cast<double>(values_.size() + 1);
      for (LineOfMoments& line : lines) {
        line.start(first * spacing_, spacing_);
        work += 50 * static_cast<double>(line.size());
      }
      for (double w = first * spacing_; w <= limit && size > std::exp(kNegligible);
           w = spacing_ * static_cast<double>(values_.size() + 1)) {
        std::complex<double> sum = -log_moment_;
        for (LineOfMoments& line : lines) {
          sum += line.next();
          work += static_cast<double>(line.size());
        }
        const std::complex<double> z(tilt_, w);
        values_.push_back(std::exp(sum) * (tilt_ * (1 + tilt_)) / (z * (z + 1.0)));
        size = std::max(std::abs(values_.back()), 0.9 * size);
        if (work > kMostWork) return;
      }
    }
    converged_ = true;
  }

  bool converged() const { return converged_; }

  double log_delta(double epsilon) const {
    double sum = 0.5;
    for (size_t i = 0; i < values_.size(); ++i) {
      const double w = spacing_ * static_cast<double>(i + 1);
      sum += (values_[i] * std::polar(1.0, -w * epsilon)).real();
    }
    return log_moment_ - tilt_ * epsilon - std::log(tilt_) - std::log1p(tilt_) +
           std::log(std::max(sum, 1e-300) * spacing_ / std::numbers::pi);
  }

 private:
  double tilt_;
  double log_moment_ = 0;
  double spacing_ = 0;
  bool converged_ = false;
  std::vector<std::complex<double>> values_;  // relative to the integrand at w = 0, without e^{-iwε}
};

// Rare large losses that hardly matter for δ can spoil the integrand. They are cut off, a share of δ at a time, and
// what was cut is counted in full: its losses are far above ε.
template <typename F>
auto with_tails_cut(std::span<const Steps> steps, Direction direction, double log_delta, const F& compute) {
  if (std::any_of(steps.begin(), steps.end(), [](const Steps& entry) { return entry.step.allocated(); })) {
    fail_user("the saddle-point integral does not cover random allocation: use pld");
  }
  const auto has = [&](Step::Kind kind) {
    return std::any_of(steps.begin(), steps.end(), [&](const Steps& entry) { return entry.step.kind == kind; });
  };
  if (has(Step::Kind::kDiscreteGaussian)) {
    fail_user("the saddle-point integral does not cover discrete gaussian noise: use pld");
  }
  if (has(Step::Kind::kCohortGaussian)) fail_user("the saddle-point integral does not cover fixed cohorts: use pld");
  const double count = static_cast<double>(total_count(steps));
  for (const double log_share : {-27.0, -18.0, -14.0, -12.0}) {
    const double tail_mass = std::exp(std::max(log_delta, -640.0) + log_share) / count;
    const ComposedLoss loss(steps, direction, tail_mass);
    double cut = 0;
    for (const Steps& entry : steps) {
      cut += static_cast<double>(entry.count) * mass_left_out(entry.step, direction, tail_mass);
    }
    if (const auto result = compute(loss, cut)) return *result;
  }
  fail_user("the saddle-point integral does not converge for these steps: use pld");
}

}  // namespace

ComposedLoss::ComposedLoss(std::span<const Steps> steps, Direction direction, double tail_mass)
    : steps_(steps.begin(), steps.end()), direction_(direction), tail_mass_(tail_mass) {
  double log_kept = 0;
  for (const Steps& entry : steps_) {
    const double count = static_cast<double>(entry.count);
    const bool seen = direction == Direction::kRemove || is_symmetric(entry.step);
    largest_ += count * largest_loss(entry.step, direction);
    if (entry.step.kind == Step::Kind::kApproximate && seen) {
      log_kept += count * std::log1p(-entry.step.sampling_rate * entry.step.delta);
    }
  }
  revealed_ = -std::expm1(log_kept);
}

void ComposedLoss::prepare(double tilt) const {
  if (!nodes_.empty() && tilt <= max_tilt_) return;
  max_tilt_ = 2 * tilt + 1;
  nodes_.clear();
  for (const Steps& entry : steps_) nodes_.push_back(loss_nodes(entry.step, direction_, {max_tilt_, 0, tail_mass_}));
}

Cumulant ComposedLoss::cumulant(double tilt) const {
  prepare(tilt);
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

std::vector<LineOfMoments> ComposedLoss::moments_along(double tilt, double max_frequency) const {
  std::vector<LineOfMoments> lines;
  for (const Steps& entry : steps_) {
    lines.emplace_back(loss_nodes(entry.step, direction_, {tilt, max_frequency, tail_mass_}), tilt,
                       static_cast<double>(entry.count));
  }
  return lines;
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

double rough_log_delta(const ComposedLoss& loss, double epsilon, double tilt) {
  const Cumulant at = loss.cumulant(tilt);
  const double curvature = at.variance + 1 / (tilt * tilt) + 1 / ((1 + tilt) * (1 + tilt));
  return at.value - tilt * epsilon - std::log(tilt) - std::log1p(tilt) -
         0.5 * std::log(2 * std::numbers::pi * curvature);
}

double rough_epsilon(const ComposedLoss& loss, double log_delta) {
  const auto too_large = [&](double epsilon) {
    return epsilon < loss.largest() && rough_log_delta(loss, epsilon, loss.saddle_point(epsilon)) > log_delta;
  };
  double low = 0;
  double high = std::max(1e-9, 2 * std::sqrt(loss.cumulant(1e-8).variance));
  if (!too_large(0)) return 0;
  while (too_large(high)) {
    low = high;
    high *= 2;
  }
  for (int i = 0; i < 60 && high - low > 1e-3 * high; ++i) {
    const double middle = (low + high) / 2;
    (too_large(middle) ? low : high) = middle;
  }
  return std::min(high, loss.largest());
}

double saddle_log_delta(std::span<const Steps> steps, Direction direction, double epsilon) {
  const ComposedLoss whole(steps, direction);
  if (epsilon >= whole.largest()) return std::log(whole.revealed());
  double guess = rough_log_delta(whole, epsilon, whole.saddle_point(epsilon));
  for (int pass = 0; pass < 3; ++pass) {
    const double found =
        with_tails_cut(steps, direction, guess, [&](const ComposedLoss& loss, double cut) -> std::optional<double> {
          const Contour contour(loss, epsilon, guess);
          if (!contour.converged()) return std::nullopt;
          return log_add(std::min(0.0, contour.log_delta(epsilon)), std::log(cut));
        });
    if (std::abs(found - guess) < 2) return log_add(found, std::log(whole.revealed()));
    guess = found;
  }
  return log_add(guess, std::log(whole.revealed()));
}

double saddle_epsilon(std::span<const Steps> steps, Direction direction, double delta) {
  const double finite = delta - ComposedLoss(steps, direction).revealed();
  if (!(finite > 0)) return kInfinity;
  const double target = std::log(finite);
  return with_tails_cut(steps, direction, target, [&](const ComposedLoss& loss, double cut) -> std::optional<double> {
    double guess = rough_epsilon(loss, target);
    if (guess > kMostEpsilon) {
      fail_user("epsilon is about {:.3g} here, where the saddle-point integral takes too long: use pld", guess);
    }
    for (int pass = 0; pass < 60; ++pass) {
      const Contour contour(loss, guess, target);
      if (!contour.converged()) return std::nullopt;
      const auto excess = [&](double epsilon) { return log_add(contour.log_delta(epsilon), std::log(cut)) - target; };
      if (guess == 0 && excess(0) <= 0) return 0;
      // δ falls with ε; within a tenth of the guess the contour serves, beyond it shows where to go.
      double low = 0.9 * guess;
      double high = std::min(1.1 * guess + 1e-9, loss.largest());
      if (excess(low) < 0) {
        guess = low < 1e-9 ? 0 : low;
      } else if (excess(high) > 0) {
        guess = high;
      } else {
        std::uintmax_t iterations = 60;
        const auto root = boost::math::tools::toms748_solve(excess, low, high,
                                                            boost::math::tools::eps_tolerance<double>(42), iterations);
        const double found = (root.first + root.second) / 2;
        if (std::abs(found - guess) <= 1e-4 * guess) return found;
        guess = found;
      }
    }
    return std::nullopt;
  });
}

}  // namespace sotto::privacy
