#include "privacy/accounting/worst_pair.h"

#include "privacy/accounting/normal.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <stdexcept>

namespace sotto::privacy {
namespace {

constexpr double kHalfLogTwoPi = 0.91893853320467274178;

double log_add(double a, double b) {
  const double high = std::max(a, b);
  return high + std::log1p(std::exp(std::min(a, b) - high));
}

// e^a (e^d - 1) where e^d alone may overflow.
double exp_times_expm1(double a, double d) {
  return d > 40 ? std::exp(a + d) : std::exp(a) * std::expm1(d);
}

// The least z ≥ 0, to a few digits and rounded up, at which the decreasing `tail` is at most `mass`.
template <typename F>
double tail_quantile(const F& tail, double mass) {
  double low = 0;
  double high = 60;
  if (tail(low) <= mass) return low;
  while (high - low > 1e-3) {
    const double middle = (low + high) / 2;
    (tail(middle) <= mass ? high : low) = middle;
  }
  return high;
}

}  // namespace

LossRange gaussian_range(const Step& step, double tail_mass) {
  const double mu = base_loss(step).mu;
  const double q = step.sampling_rate;
  const double low = tail_quantile([](double z) { return static_cast<double>(normal_tail(z)); }, tail_mass);
  const double high = tail_quantile(
      [&](double z) {
        return static_cast<double>(q * normal_tail(z) + (1 - q) * normal_tail(z + static_cast<long double>(mu)));
      },
      tail_mass);
  return {-mu * mu / 2 - mu * low, mu * mu / 2 + mu * high};
}

bool is_symmetric(const Step& step) {
  return !step.amplified() || !is_one_sided(step.adjacency) || step.kind == Step::Kind::kCohortGaussian;
}

bool is_replaced_gaussian(const Step& step) {
  return step.sampled() && !is_one_sided(step.adjacency) && step.kind == Step::Kind::kGaussian;
}

bool is_mirrored(const Step& step) {
  if (!step.sampled()) return false;
  return step.kind == Step::Kind::kCohortGaussian ||
         (!is_one_sided(step.adjacency) && step.kind != Step::Kind::kGaussian);
}

bool reveals_absence(const Step& step) {
  return step.kind == Step::Kind::kApproximate && step.delta > 0 && step.sampled() && !is_mirrored(step);
}

double BaseLoss::log_density(double loss) const {
  if (gaussian) {
    const double y = (loss - mu * mu / 2) / mu;
    return -y * y / 2 + log_scale;
  }
  return (loss - highest) / 2 + log_scale;
}

BaseLoss base_loss(const Step& step) {
  BaseLoss base;
  const auto add_mirrored_atoms = [&](double mass) {
    const double opposite = mass * std::exp(-base.highest);
    base.atoms = {{base.highest, mass, opposite}, {-base.highest, opposite, mass}};
  };
  switch (step.kind) {
    case Step::Kind::kGaussian:
    case Step::Kind::kCohortGaussian:
      base.has_density = true;
      base.gaussian = true;
      base.mu = (is_mirrored(step) && is_one_sided(step.adjacency) ? 2 : 1) / step.noise_multiplier;
      base.highest = std::numeric_limits<double>::infinity();
      base.log_scale = -kHalfLogTwoPi - std::log(base.mu);
      break;
    case Step::Kind::kLaplace:
      base.has_density = true;
      base.highest = 1 / step.noise_multiplier;
      base.log_scale = -2 * std::log(2.0);
      add_mirrored_atoms(0.5);
      break;
    case Step::Kind::kPure:
    case Step::Kind::kApproximate:
      base.highest = step.epsilon;
      base.revealed = step.kind == Step::Kind::kApproximate ? step.delta : 0;
      add_mirrored_atoms((1 - base.revealed) / (1 + std::exp(-step.epsilon)));
      break;
    case Step::Kind::kBoundedRange:
      base.has_density = true;
      base.highest = step.epsilon;
      base.log_scale = -std::log(2.0) - std::log(-std::expm1(-step.epsilon));
      break;
    case Step::Kind::kDiscreteGaussian:
      throw std::logic_error("a discrete Gaussian has no density");
  }
  return base;
}

double sampled_loss(double base, double q) {
  if (q == 1) return base;
  if (base < 1) {
    const double shift = q * std::expm1(base);
    return shift > -0.5 ? std::log1p(shift) : std::log((1 - q) + q * std::exp(base));
  }
  return base + std::log(q + (1 - q) * std::exp(-base));
}

double largest_loss(const Step& step, Direction direction) {
  if (direction == Direction::kRemove || is_symmetric(step)) return largest_loss(step);
  const double q = step.sampling_rate;
  return reveals_absence(step) ? -std::log1p(-q) : -sampled_loss(-base_loss(step).highest, q);
}

double unsampled_loss(double loss, double q) {
  if (q == 1) return loss;
  if (loss > 1) return loss + std::log((1 - (1 - q) * std::exp(-loss)) / q);
  const double shift = std::expm1(loss) / q;
  return shift <= -1 ? -std::numeric_limits<double>::infinity() : std::log1p(shift);
}

LatticeLoss::LatticeLoss(const Step& step) : stddev_(step.noise_multiplier), variance_(stddev_ * stddev_) {
  // By Poisson's formula the sum is √(2π)σ(1 + 2e^{-2π²σ²} + …): above it, and from σ = 2 on by less than 1e-33.
  const long double variance = static_cast<long double>(stddev_) * stddev_;
  long double total = std::sqrt(2 * std::numbers::pi_v<long double>) * stddev_;
  if (stddev_ < 2) {
    total = 1;
    for (int j = 1; j <= 24; ++j) total += 2 * std::exp(-static_cast<long double>(j * j) / (2 * variance));
  }
  log_total_ = static_cast<double>(std::log(total * (1 - 1e-17L))) - 2e-15;
}

double LatticeLoss::log_p(int64_t j) const {
  const auto x = static_cast<double>(j);
  return -x * x / (2 * variance_) - log_total_;
}

double LatticeLoss::p_mass(int64_t j) const {
  const double exponent = log_p(j);
  return std::exp(exponent) * (1 + 8 * std::numeric_limits<double>::epsilon() * (1 + std::abs(exponent)));
}

int64_t LatticeLoss::reach(double tail_mass) const {
  // What follows a term falls faster than a geometric series.
  const auto tail = [&](int64_t j) {
    const double ratio = (static_cast<double>(j) + 1.5) / variance_;
    return p_mass(j + 1) * (1 + 1e-12) / -std::expm1(-ratio);
  };
  int64_t low = -1;
  auto high = static_cast<int64_t>(60 * stddev_) + 1;
  while (high - low > 1) {
    const int64_t middle = low + (high - low) / 2;
    (tail(middle) <= tail_mass ? high : low) = middle;
  }
  return high;
}

ReplacedGaussian::ReplacedGaussian(const Step& step)
    : mu_(1 / step.noise_multiplier),
      log_rest_(std::log1p(-step.sampling_rate)),
      log_overlap_(std::log(step.sampling_rate) - mu_ * mu_ / 8) {}

double ReplacedGaussian::reach(double tail_mass) const {
  const double q = std::exp(log_overlap_ + mu_ * mu_ / 8);
  const double y = tail_quantile(
      [&](double z) {
        return static_cast<double>((1 - q) * normal_tail(z) + q * normal_tail(z - static_cast<long double>(mu_) / 2));
      },
      tail_mass);
  return mu_ / 2 * y;
}

double ReplacedGaussian::log_p_factor(double s) const {
  return log_add(log_rest_, log_overlap_ + s);
}

double ReplacedGaussian::loss(double s) const {
  if (std::abs(s) > 1) return log_p_factor(s) - log_p_factor(-s);
  return std::log1p(2 * std::sinh(s) * std::exp(log_overlap_ - log_p_factor(-s)));
}

double ReplacedGaussian::variable_at(double loss) const {
  if (loss == 0) return 0;
  // e^loss = (ν + e^s)/(ν + e^{-s}) with ν = (1-q)/(q e^{-μ²/8}), so s = loss/2 + asinh(ν sinh(loss/2)).
  const double half = std::abs(loss) / 2;
  const double log_nu = log_rest_ - log_overlap_;
  const double log_sinh = half > 20 ? half - std::log(2.0) : std::log(std::sinh(half));
  const double bent =
      log_nu + log_sinh > 20 ? log_nu + log_sinh + std::log(2.0) : std::asinh(std::exp(log_nu) * std::sinh(half));
  return std::copysign(half + bent, loss);
}

double ReplacedGaussian::log_centre_density(double s) const {
  const double y = 2 * s / mu_;
  return -y * y / 2 - kHalfLogTwoPi + std::log(2 / mu_);
}

double ReplacedGaussian::excess(double s, double to) const {
  const double d = std::abs(to - s);
  const double from = std::min(s, to);
  const double scale = log_centre_density(s) - log_p_factor(-to);
  const double mixed = scale + log_rest_ + log_overlap_;
  return exp_times_expm1(mixed + from, d) + exp_times_expm1(mixed - from - d, d) +
         exp_times_expm1(scale + 2 * log_overlap_ - d, 2 * d);
}

}  // namespace sotto::privacy
