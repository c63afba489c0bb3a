#include "privacy/accounting/loss_nodes.h"

#include "privacy/accounting/allocation.h"
#include "privacy/accounting/normal.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace sotto::privacy {
namespace {

// Standard deviations beyond which a normal distribution holds less than 1e-31.
constexpr double kReach = 12;
// Where the smooth cut of tails is centred, in standard deviations above the sharp one.
constexpr double kTaperShift = 0.4;

void add(LossNodes& nodes, double loss, double log_q) {
  nodes.loss.push_back(loss);
  nodes.log_q.push_back(log_q);
}

// The trapezoidal rule converges geometrically for functions that are analytic in a strip: of half width π here, where
// 1 - q + q e^t vanishes.
double trapezoid_spacing(double deviation, double max_frequency) {
  return std::min({0.25 * deviation, 0.45, 2 / std::max(max_frequency, 1e-300)});
}

// A smooth end of the range, since the trapezoidal rule suffers from a sharp one.
class Taper {
 public:
  Taper() = default;
  // Hardly anything below `from` is cut.
  Taper(double from, double deviation) : centre_(from + kTaperShift * deviation), width_(0.15 * deviation) {}

  double end() const { return centre_ + 7 * width_; }
  double spacing() const { return 0.4 * width_; }
  double log_weight(double t) const {
    return t < centre_ - 6 * width_ ? 0 : std::log(std::erfc((t - centre_) / width_) / 2);
  }

 private:
  double centre_ = 1e300;
  double width_ = 1e290;
};

void add_gaussian(LossNodes& nodes, const Step& step, const BaseLoss& base, Direction direction,
                  const NodeLimits& limits) {
  const double mu = base.mu;
  const double q = step.sampling_rate;
  const double max_tilt = limits.max_tilt;
  // How fast the sampled loss follows the base loss; it grows with t.
  const auto follows = [&](double t) { return 1 / (1 + (1 - q) / q * std::exp(-t)); };
  double low = -mu * mu / 2 - kReach * mu;
  double high = mu * mu / 2 + kReach * mu;
  if (direction == Direction::kRemove || q == 1) {
    // The tilted density has its modes where t = μ²/2 + λμ²·follows(t): from above, the largest; with a margin.
    double shift = max_tilt * mu * mu;
    for (int i = 0; i < 40; ++i) shift = std::min(shift, max_tilt * mu * mu * 1.3 * follows(high + shift));
    high += shift;
  } else {
    // Tilts of the swapped pair move mass down, but not below where 1 - q + q e^t is flat.
    const double flat = std::log((1 - q) / q) - std::log1p(max_tilt) - 10 - kReach * mu;
    low = std::min(low, std::max(low - max_tilt * mu * mu * follows(mu * mu / 2), flat));
  }
  const Taper taper = limits.tail_mass > 0 ? Taper(gaussian_range(step, limits.tail_mass).high, mu) : Taper();
  high = std::min(high, taper.end());
  const double spacing = std::min(trapezoid_spacing(mu, limits.max_frequency * follows(high)), taper.spacing());
  const double log_spacing = std::log(spacing);
  const auto points = static_cast<int64_t>(std::ceil((high - low) / spacing));
  for (int64_t i = 0; i < points; ++i) {
    const double t = low + static_cast<double>(i) * spacing;
    add(nodes, sampled_loss(t, q), base.log_density(t) - t + log_spacing + taper.log_weight(t));
  }
}

void add_replaced_gaussian(LossNodes& nodes, const Step& step, const NodeLimits& limits) {
  const ReplacedGaussian pair(step);
  const double half = pair.mu() / 2;
  const Taper taper = limits.tail_mass > 0 ? Taper(pair.reach(limits.tail_mass), half) : Taper();
  const double low = -half * (half + kReach + 2 * half);
  const double high = std::min(half * (half + kReach + 2 * half * (limits.max_tilt + 1)), taper.end());
  const double spacing = std::min(trapezoid_spacing(half, 2 * limits.max_frequency), taper.spacing());
  const double log_spacing = std::log(spacing);
  const auto points = static_cast<int64_t>(std::ceil((high - low) / spacing));
  for (int64_t i = 0; i < points; ++i) {
    const double s = low + static_cast<double>(i) * spacing;
    add(nodes, pair.loss(s), pair.log_centre_density(s) + pair.log_q_factor(s) + log_spacing + taper.log_weight(s));
  }
}

void add_allocated(LossNodes& nodes, const Step& step, const NodeLimits& limits) {
  // Tails in steps of e⁻⁸, so that grids made before can be used again.
  const double tail_mass = limits.tail_mass > 0 ? std::exp(8 * std::floor(std::log(limits.tail_mass) / 8)) : 0;
  const LossGrid grid = allocated_grid(step, rough_allocated_spacing(step), tail_mass);
  for (size_t i = 0; i < grid.mass.size(); ++i) {
    if (grid.mass[i] == 0) continue;
    const double loss = static_cast<double>(grid.first + static_cast<int64_t>(i)) * grid.spacing;
    add(nodes, loss, std::log(grid.mass[i]) - loss);
  }
}

// Gauss-Legendre panels over a density on [low, high], which changes by at most `rate` per unit in its logarithm.
void add_panels(LossNodes& nodes, const BaseLoss& base, double q, double low, double high, double rate,
                const NodeLimits& limits) {
  static constexpr std::array<double, 8> kNodes = {-0.960289856497536232, -0.796666477413626740, -0.525532409916328986,
                                                   -0.183434642495649805, 0.183434642495649805,  0.525532409916328986,
                                                   0.796666477413626740,  0.960289856497536232};
  static constexpr std::array<double, 8> kWeights = {0.101228536290376259, 0.222381034453374471, 0.313706645877887287,
                                                     0.362683783378361983, 0.362683783378361983, 0.313706645877887287,
                                                     0.222381034453374471, 0.101228536290376259};
  const double width = high - low;
  const auto panels = static_cast<int64_t>(
      std::clamp(std::ceil(width * (rate + std::min(limits.max_tilt, 1e3) + limits.max_frequency) / 2), 4.0, 2e5));
  const double radius = width / static_cast<double>(panels) / 2;
  for (int64_t i = 0; i < panels; ++i) {
    const double centre = low + radius * static_cast<double>(2 * i + 1);
    for (size_t j = 0; j < kNodes.size(); ++j) {
      const double t = centre + radius * kNodes[j];
      add(nodes, sampled_loss(t, q), base.log_density(t) - t + std::log(radius * kWeights[j]));
    }
  }
}

// Losses of at least 0, which begin sharply.
void add_mirrored_gaussian(LossNodes& nodes, const Step& step, const BaseLoss& base, const NodeLimits& limits) {
  const double mu = base.mu;
  double high = mu * mu / 2 + kReach * mu + limits.max_tilt * mu * mu;
  if (limits.tail_mass > 0) high = std::min(high, gaussian_range(step, limits.tail_mass).high + kTaperShift * mu);
  add_panels(nodes, base, step.sampling_rate, 0, high, (high / mu + mu) / mu, limits);
}

// Moments of a discrete Gaussian of σ ≥ 2 are the Gaussian's but for e^{-2π²σ²}; below it has few atoms.
void add_lattice(LossNodes& nodes, const Step& step, const NodeLimits& limits) {
  const double stddev = step.noise_multiplier;
  if (stddev >= 2) {
    const Step gaussian = Step::gaussian(stddev);
    add_gaussian(nodes, gaussian, base_loss(gaussian), Direction::kRemove, limits);
    return;
  }
  const LatticeLoss pair(step);
  const auto width = static_cast<int64_t>(std::ceil(kReach * stddev)) + 1;
  auto highest = static_cast<int64_t>(std::min(static_cast<double>(width) + limits.max_tilt, 1e7));
  if (limits.tail_mass > 0) highest = std::min(highest, pair.reach(limits.tail_mass));
  for (int64_t j = -1 - width; j <= highest; ++j) add(nodes, pair.loss(j), pair.log_p(j) - pair.loss(j));
}

// Losses below 0 as the mirror image of those above, and the rest at 0.
void mirror(LossNodes& nodes, double revealed) {
  double rest = 1 - revealed;
  const size_t size = nodes.size();
  for (size_t i = 0; i < size; ++i) {
    const double loss = nodes.loss[i];
    const double log_q = nodes.log_q[i];
    add(nodes, -loss, log_q + loss);
    rest -= std::exp(log_q) + std::exp(log_q + loss);
  }
  add(nodes, 0, std::log(std::max(rest, 1e-300)));
}

void swap_roles(LossNodes& nodes) {
  for (size_t i = 0; i < nodes.size(); ++i) {
    nodes.log_q[i] += nodes.loss[i];
    nodes.loss[i] = -nodes.loss[i];
  }
}

}  // namespace

LossNodes loss_nodes(const Step& step, Direction direction, const NodeLimits& limits) {
  LossNodes nodes;
  const double q = step.sampling_rate;
  if (is_replaced_gaussian(step)) {
    add_replaced_gaussian(nodes, step, limits);
    return nodes;
  }
  if (step.kind == Step::Kind::kDiscreteGaussian) {
    add_lattice(nodes, step, limits);
    return nodes;
  }
  const BaseLoss base = base_loss(step);
  if (step.allocated()) {
    add_allocated(nodes, step, limits);
  } else if (base.gaussian && is_mirrored(step)) {
    add_mirrored_gaussian(nodes, step, base, limits);
    mirror(nodes, 0);
  } else if (base.gaussian) {
    add_gaussian(nodes, step, base, direction, limits);
  } else {
    if (base.has_density) {
      add_panels(nodes, base, q, is_mirrored(step) ? 0 : -base.highest, base.highest, 1, limits);
    }
    for (const BaseLoss::Atom& atom : base.atoms) {
      if (is_mirrored(step) && atom.loss < 0) continue;
      add(nodes, sampled_loss(atom.loss, q), std::log(atom.q_mass));
    }
    if (reveals_absence(step)) add(nodes, std::log1p(-q), std::log(base.revealed));
    if (is_mirrored(step)) mirror(nodes, q * base.revealed);
  }
  if (direction == Direction::kAdd && !is_symmetric(step)) swap_roles(nodes);
  return nodes;
}

double mass_left_out(const Step& step, Direction direction, double tail_mass) {
  if (step.kind != Step::Kind::kGaussian || tail_mass <= 0) return 0;
  if (direction == Direction::kAdd && !is_symmetric(step)) return 0;
  const double mu = 1 / step.noise_multiplier;
  const double q = step.sampling_rate;
  if (is_replaced_gaussian(step)) {
    const double y = 2 * ReplacedGaussian(step).reach(tail_mass) / mu + kTaperShift;
    return static_cast<double>((1 - q) * normal_tail(y) + q * normal_tail(y - mu / 2));
  }
  const double z = gaussian_range(step, tail_mass).high / mu - mu / 2 + kTaperShift;
  return static_cast<double>(q * normal_tail(z) + (1 - q) * normal_tail(z + mu));
}

Cumulant cumulant(const LossNodes& nodes, double tilt) {
  double highest = -std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < nodes.size(); ++i) highest = std::max(highest, nodes.log_q[i] + (tilt + 1) * nodes.loss[i]);
  double mass = 0;
  double first = 0;
  double second = 0;
  for (size_t i = 0; i < nodes.size(); ++i) {
    const double weight = std::exp(nodes.log_q[i] + (tilt + 1) * nodes.loss[i] - highest);
    mass += weight;
    first += weight * nodes.loss[i];
    second += weight * nodes.loss[i] * nodes.loss[i];
  }
  const double mean = first / mass;
  return {highest + std::log(mass), mean, std::max(0.0, second / mass - mean * mean)};
}

LineOfMoments::LineOfMoments(const LossNodes& nodes, double tilt, double count)
    : count_(count), scale_(-std::numeric_limits<double>::infinity()) {
  for (size_t i = 0; i < nodes.size(); ++i) scale_ = std::max(scale_, nodes.log_q[i] + (tilt + 1) * nodes.loss[i]);
  for (size_t i = 0; i < nodes.size(); ++i) {
    const double exponent = nodes.log_q[i] + (tilt + 1) * nodes.loss[i] - scale_;
    if (exponent < -45) continue;
    loss_.push_back(nodes.loss[i]);
    weight_.push_back(std::exp(exponent));
  }
}

void LineOfMoments::start(double first, double spacing) {
  first_ = first;
  spacing_ = spacing;
  position_ = 0;
  for (auto* part : {&real_, &imag_, &cos_, &sin_}) part->resize(size());
  for (size_t i = 0; i < size(); ++i) {
    cos_[i] = std::cos(spacing * loss_[i]);
    sin_[i] = std::sin(spacing * loss_[i]);
  }
}

void LineOfMoments::turn_exactly() {
  const double w = first_ + static_cast<double>(position_) * spacing_;
  for (size_t i = 0; i < size(); ++i) {
    real_[i] = weight_[i] * std::cos(w * loss_[i]);
    imag_[i] = weight_[i] * std::sin(w * loss_[i]);
  }
}

std::complex<double> LineOfMoments::next() {
  // Rotations drift by a rounding each, which a power of 10⁶ would magnify.
  if (position_ % 128 == 0) turn_exactly();
  ++position_;
  double real = 0;
  double imag = 0;
  for (size_t i = 0; i < size(); ++i) {
    real += real_[i];
    imag += imag_[i];
    const double turned = real_[i] * cos_[i] - imag_[i] * sin_[i];
    imag_[i] = real_[i] * sin_[i] + imag_[i] * cos_[i];
    real_[i] = turned;
  }
  return count_ * (scale_ + std::log(std::complex<double>(real, imag)));
}

double log_renyi_moment(const LossNodes& nodes, double order) {
  // E_Q[e^L] = 1, so E_Q[e^{αL}] - 1 = E_Q[(1+y)^α - 1 - αy] with y = e^L - 1: positive terms, nothing cancels.
  double highest = -std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < nodes.size(); ++i) highest = std::max(highest, nodes.log_q[i] + order * nodes.loss[i]);
  if (highest > 600) return cumulant(nodes, order - 1).value;
  double sum = 0;
  for (size_t i = 0; i < nodes.size(); ++i) {
    const double loss = nodes.loss[i];
    const double y = std::expm1(loss);
    double convex;
    if (std::abs(order * loss) < 0.02 && std::abs(y) < 0.02) {
      double term = order * (order - 1) / 2 * y * y;
      convex = term;
      for (int k = 3; k < 12; ++k) {
        term *= (order - k + 1) / k * y;
        convex += term;
      }
    } else if (order * loss > 500) {
      sum += std::exp(nodes.log_q[i] + order * loss);
      continue;
    } else {
      convex = std::expm1(order * loss) - order * y;
    }
    sum += std::exp(nodes.log_q[i]) * convex;
  }
  return std::log1p(sum);
}

}  // namespace sotto::privacy
