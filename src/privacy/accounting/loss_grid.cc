#include "privacy/accounting/loss_grid.h"

#include "privacy/accounting/allocation.h"
#include "privacy/accounting/gauss_legendre.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace sotto::privacy {
namespace {

constexpr double kRounding = std::numeric_limits<double>::epsilon();

struct Ends {
  double low = 0;
  double high = 0;
};

template <int kNodes, typename F>
void integrate_piece(const F& integrand, double from, double to, Ends& sum) {
  const double centre = (from + to) / 2;
  const double radius = (to - from) / 2;
  for (int i = 0; i < kNodes; ++i) {
    const Ends value = integrand(centre + radius * GaussLegendre<kNodes>::nodes[i]);
    sum.low += radius * GaussLegendre<kNodes>::weights[i] * value.low;
    sum.high += radius * GaussLegendre<kNodes>::weights[i] * value.high;
  }
}

// ∫ of a function whose logarithm changes by at most `rate` per unit. The remainder of n nodes on a piece of width w is
// below (rate·w)^{2n} (n!)⁴/((2n+1)(2n)!³): 4e-16 for 3 nodes at 0.03 and for 5 nodes at 0.5.
template <typename F>
Ends integrate(const F& integrand, double from, double to, double rate) {
  Ends sum;
  const double width = to - from;
  if (width * rate <= 0.03) {
    integrate_piece<3>(integrand, from, to, sum);
    return sum;
  }
  const auto pieces = static_cast<int64_t>(std::ceil(width * rate / 0.5));
  for (int64_t i = 0; i < pieces; ++i) {
    const double left = from + width * static_cast<double>(i) / static_cast<double>(pieces);
    const double right = from + width * static_cast<double>(i + 1) / static_cast<double>(pieces);
    integrate_piece<5>(integrand, left, right, sum);
  }
  return sum;
}

double exp_times_expm1(double log_factor, double d) {
  return d > 40 ? std::exp(log_factor + d) : std::exp(log_factor) * std::expm1(d);
}

class Builder {
 public:
  Builder(double spacing, double lowest_loss, double highest_loss)
      : cell_gain_(-std::expm1(-spacing)), cell_growth_(std::expm1(spacing)) {
    grid_.spacing = spacing;
    grid_.first = static_cast<int64_t>(std::floor(lowest_loss / spacing)) - 1;
    const auto last = static_cast<int64_t>(std::ceil(highest_loss / spacing)) + 1;
    grid_.mass.assign(static_cast<size_t>(last - grid_.first + 1), 0.0);
  }

  LossGrid& grid() { return grid_; }
  double& at(int64_t k) { return grid_.mass[static_cast<size_t>(k - grid_.first)]; }
  double spacing() const { return grid_.spacing; }

  // `excess` holds ∫(e^{high end}·Q - P) and ∫(P - e^{low end}·Q) over the cell that begins at k.
  void add_cell(int64_t k, const Ends& excess, double variable) {
    const double inflation = 1 + 2e-14 + 8 * kRounding * std::abs(static_cast<double>(k)) * (1 + std::abs(variable));
    at(k) += std::max(0.0, excess.low) / cell_growth_ * inflation;
    at(k + 1) += std::max(0.0, excess.high) / cell_gain_ * inflation;
  }

  // An atom nearer to a grid point than losses are exact lies on it.
  void add_atom(double loss, double p_mass) {
    const double nearest = std::round(loss / spacing());
    if (std::abs(nearest * spacing() - loss) <= grid_.position_error / 2) {
      at(static_cast<int64_t>(nearest)) += p_mass * (1 + 8 * kRounding);
      return;
    }
    const auto k = static_cast<int64_t>(std::floor(loss / spacing()));
    const double above = loss - static_cast<double>(k) * spacing();
    add_cell(k, {p_mass * std::expm1(spacing() - above), p_mass * -std::expm1(-above)}, 0);
  }

  // Losses below 0 as the mirror image of those above, and the rest at 0.
  void mirror() {
    double rest = 1 - grid_.p_at_infinity;
    const int64_t last = grid_.first + static_cast<int64_t>(grid_.mass.size()) - 1;
    std::vector<double> both(static_cast<size_t>(2 * last + 1), 0.0);
    for (int64_t k = 1; k <= last; ++k) {
      const double reflected = at(k) * std::exp(-static_cast<double>(k) * spacing());
      both[static_cast<size_t>(last + k)] = at(k);
      both[static_cast<size_t>(last - k)] = reflected;
      rest -= at(k) + reflected;
    }
    both[static_cast<size_t>(last)] = std::max(0.0, rest) + 1e-13;
    grid_.mass = std::move(both);
    grid_.first = -last;
    grid_.q_at_infinity = grid_.p_at_infinity;
  }

 private:
  LossGrid grid_;
  double cell_gain_;
  double cell_growth_;
};

LossRange base_range(const Step& step, const BaseLoss& base, double tail_mass) {
  if (base.gaussian) {
    LossRange range = gaussian_range(step, tail_mass);
    if (is_mirrored(step)) range.low = 0;
    return range;
  }
  return {is_mirrored(step) ? 0 : -base.highest, base.highest};
}

// The finite losses of the sampled pair.
LossRange mixture_range(const Step& step, const LossRange& of_base) {
  const double q = step.sampling_rate;
  const double low = reveals_absence(step) ? std::log1p(-q) : sampled_loss(of_base.low, q);
  return {low, sampled_loss(of_base.high, q)};
}

// The density part of a sampled pair: P' = (1-q)Q + qP, so P' - e^ℓ Q = q(P - e^t Q) with t the base loss at ℓ.
void add_density(Builder& builder, const BaseLoss& base, double q, const LossRange& range) {
  const double h = builder.spacing();
  const double log_q = std::log(q);
  double from = range.low;
  auto k = static_cast<int64_t>(std::floor(sampled_loss(from, q) / h));
  double low_end = unsampled_loss(static_cast<double>(k) * h, q);
  for (; from < range.high; ++k) {
    const double high_end = unsampled_loss(static_cast<double>(k + 1) * h, q);
    const double to = std::min(high_end, range.high);
    if (to <= from) {
      low_end = high_end;
      continue;
    }
    const double slope =
        base.gaussian
            ? std::max(std::abs(from / base.mu - base.mu / 2), std::abs(to / base.mu - base.mu / 2)) / base.mu +
                  1 / base.mu
            : 1;
    Ends excess;
    if (std::isinf(low_end)) {
      // The cell begins below ln(1-q), where no loss lies.
      const double surplus = std::max(0.0, 1 - q - std::exp(static_cast<double>(k) * h));
      excess = integrate(
          [&](double t) {
            const double log_p = base.log_density(t);
            return Ends{exp_times_expm1(log_q + log_p, high_end - t),
                        std::exp(log_q + log_p) + surplus * std::exp(log_p - t)};
          },
          from, to, slope + 1);
    } else {
      excess = integrate(
          [&](double t) {
            const double p = std::exp(log_q + base.log_density(t));
            return Ends{p * std::expm1(high_end - t), p * -std::expm1(low_end - t)};
          },
          from, to, slope + 1);
    }
    builder.add_cell(k, excess, std::max(std::abs(from), std::abs(to)));
    from = to;
    low_end = high_end;
  }
}

LossGrid discretise_mixture(const Step& step, double h, double tail_mass) {
  const BaseLoss base = base_loss(step);
  const double q = step.sampling_rate;
  const LossRange range = base_range(step, base, tail_mass);
  const LossRange losses = mixture_range(step, range);
  Builder builder(h, losses.low, losses.high);
  LossGrid& grid = builder.grid();
  grid.position_error = 16 * kRounding * (1 + std::max(std::abs(range.low), range.high)) *
                        std::max(std::abs(losses.low), std::abs(losses.high));
  if (base.has_density) add_density(builder, base, q, range);
  for (const BaseLoss::Atom& atom : base.atoms) {
    if (is_mirrored(step) && atom.loss < 0) continue;
    builder.add_atom(sampled_loss(atom.loss, q), q * atom.p_mass + (1 - q) * atom.q_mass);
  }
  grid.p_at_infinity = q * base.revealed;
  grid.q_at_infinity = q == 1 ? base.revealed : 0;
  if (base.gaussian) {
    // What lies outside is revealed in one direction and moved to the edge of the grid in the other.
    grid.p_at_infinity += tail_mass;
    grid.q_at_infinity += tail_mass;
    grid.p_below = tail_mass;
    grid.q_above = tail_mass;
  } else if (reveals_absence(step)) {
    builder.add_atom(losses.low, (1 - q) * base.revealed);
  }
  if (is_mirrored(step)) builder.mirror();
  return std::move(grid);
}

// Atoms at (j + ½)/σ².
LossGrid discretise_lattice(const Step& step, double h, double tail_mass) {
  const LatticeLoss pair(step);
  const int64_t reach = pair.reach(tail_mass);
  const double highest = pair.loss(reach);
  Builder builder(h, -highest, highest);
  LossGrid& grid = builder.grid();
  grid.position_error = 8 * kRounding * highest;
  const double atoms_per_cell = std::min(h / (pair.loss(1) - pair.loss(0)), 2.0 * static_cast<double>(reach)) + 2;
  for (int64_t j = -1 - reach; j <= reach; ++j) {
    builder.add_atom(pair.loss(j), pair.p_mass(j) * (1 + 2 * kRounding * atoms_per_cell));
  }
  grid.p_at_infinity = tail_mass;
  grid.q_at_infinity = tail_mass;
  grid.p_below = tail_mass;
  grid.q_above = tail_mass;
  return std::move(grid);
}

LossGrid discretise_replaced(const Step& step, double h, double tail_mass) {
  const ReplacedGaussian pair(step);
  const double reach = pair.reach(tail_mass);
  Builder builder(h, 0, pair.loss(reach));
  LossGrid& grid = builder.grid();
  grid.position_error = 8 * kRounding * (1 + reach) * pair.loss(reach);
  double from = 0;
  double low_end = 0;
  for (int64_t k = 0; from < reach; ++k) {
    const double high_end = pair.variable_at(static_cast<double>(k + 1) * h);
    const double to = std::min(high_end, reach);
    const double y = 2 * to / pair.mu();
    const double rate = 2 + (2 / pair.mu()) * (y + pair.mu() / 2 + 1);
    const Ends excess = integrate(
        [&](double s) {
          return Ends{pair.excess(s, high_end), pair.excess(s, low_end)};
        },
        from, to, rate);
    builder.add_cell(k, excess, to);
    from = to;
    low_end = high_end;
  }
  grid.p_at_infinity = tail_mass;
  grid.p_below = tail_mass;
  grid.q_above = tail_mass;
  builder.mirror();
  return std::move(grid);
}

}  // namespace

LossGrid LossGrid::swapped() const {
  LossGrid result;
  result.spacing = spacing;
  result.position_error = position_error;
  result.p_at_infinity = q_at_infinity;
  result.q_at_infinity = p_at_infinity;
  result.p_below = q_above;
  result.q_above = p_below;
  result.first = -(first + static_cast<int64_t>(mass.size()) - 1);
  result.mass.resize(mass.size());
  for (size_t i = 0; i < mass.size(); ++i) {
    const double loss = static_cast<double>(first + static_cast<int64_t>(i)) * spacing;
    result.mass[mass.size() - 1 - i] = mass[i] * std::exp(-loss);
  }
  return result;
}

LossGrid discretise(const Step& step, double spacing, double tail_mass) {
  if (step.allocated()) return allocated_grid(step, spacing, tail_mass);
  if (step.kind == Step::Kind::kDiscreteGaussian) return discretise_lattice(step, spacing, tail_mass);
  return is_replaced_gaussian(step) ? discretise_replaced(step, spacing, tail_mass)
                                    : discretise_mixture(step, spacing, tail_mass);
}

double grid_points(const Step& step, double spacing, double tail_mass) {
  if (step.kind == Step::Kind::kDiscreteGaussian) {
    const LatticeLoss pair(step);
    return 2 * pair.loss(pair.reach(tail_mass)) / spacing;
  }
  if (is_replaced_gaussian(step)) {
    const ReplacedGaussian pair(step);
    return 2 * pair.loss(pair.reach(tail_mass)) / spacing;
  }
  const LossRange losses = mixture_range(step, base_range(step, base_loss(step), tail_mass));
  return (losses.high - losses.low) / spacing;
}

}  // namespace sotto::privacy
