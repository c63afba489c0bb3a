#include "privacy/accounting/spread_law.h"

#include "privacy/accounting/gauss_legendre.h"
#include "privacy/accounting/normal.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace sotto::privacy {
namespace {

constexpr double kUnit = std::numeric_limits<double>::epsilon();
constexpr double kLeast = std::numeric_limits<double>::min();

double value_at(const SpreadLaw& law, int64_t k) {
  return std::exp(static_cast<double>(k) * law.spacing);
}

// The least z ≥ 0, rounded up, beyond which a normal variable has at most this mass.
double normal_quantile(double mass) {
  double low = 0;
  double high = 60;
  while (high - low > 1e-3) {
    const double middle = (low + high) / 2;
    (static_cast<double>(normal_tail(middle)) <= mass ? high : low) = middle;
  }
  return high;
}

// A lognormal of mean 1 above e^cut, in terms of its mean: what a spread leaves at e^cut and sends to infinity. Read
// from below, with -cut, it is the probability below the cut: what stays at the cut and what goes to 0.
struct Outside {
  double at_end;
  double beyond;
};
Outside outside(double mu, double cut) {
  const auto m = static_cast<long double>(mu);
  const long double whole = normal_tail(cut / m - m / 2);
  const long double at_end = std::exp(static_cast<long double>(cut)) * normal_tail(cut / m + m / 2);
  return {static_cast<double>(std::min(whole, at_end * (1 + 1e-14L))),
          static_cast<double>(std::max(0.0L, whole - at_end) + 1e-14L * whole)};
}

// What one value of loss `above` over a grid point gives to that point and to the next.
struct Split {
  double lower;
  double upper;
};
Split split(double above, double spacing) {
  const double cell = std::expm1(spacing);
  return {std::exp(above) * std::expm1(spacing - above) / cell, std::expm1(above) / cell};
}

// Sums whose larger value is exp of index·spacing, in a grid finer by a factor: shares[phase][i] goes to the point
// factor·(first + i) + phase, or to the one above it.
class Shares {
 public:
  Shares(int64_t first, int64_t end, int64_t factor)
      : first_(first),
        size_(static_cast<size_t>(end - first)),
        lower_(static_cast<size_t>(factor) * size_),
        upper_(static_cast<size_t>(factor) * size_) {}

  int64_t first() const { return first_; }
  double* lower(int64_t phase, int64_t index) { return &lower_[offset(phase, index)]; }
  double* upper(int64_t phase, int64_t index) { return &upper_[offset(phase, index)]; }

  std::vector<double> collected() const {
    const size_t factor = lower_.size() / size_;
    std::vector<double> mass(factor * size_ + 1);
    for (size_t phase = 0; phase < factor; ++phase) {
      for (size_t i = 0; i < size_; ++i) {
        mass[factor * i + phase] += lower_[phase * size_ + i];
        mass[factor * i + phase + 1] += upper_[phase * size_ + i];
      }
    }
    return mass;
  }

 private:
  size_t offset(int64_t phase, int64_t index) const {
    return static_cast<size_t>(phase) * size_ + static_cast<size_t>(index - first_);
  }

  int64_t first_;
  size_t size_;
  std::vector<double> lower_;
  std::vector<double> upper_;
};

void add_products(const double* __restrict a, const double* __restrict b, size_t size, Split weight,
                  double* __restrict lower, double* __restrict upper) {
  for (size_t i = 0; i < size; ++i) {
    const double product = a[i] * b[i];
    lower[i] += product * weight.lower;
    upper[i] += product * weight.upper;
  }
}

// Adds all pairs whose index in `high` exceeds that in `low` by at least `least`. The sum exceeds the larger value by
// log1p(e^{-dh}), which depends on the difference d alone. Returns how many terms met in one place at most.
int64_t add_pairs(const SpreadLaw& high, const SpreadLaw& low, int64_t least, double times, int64_t factor,
                  Shares& shares) {
  const double h = high.spacing;
  const double out = h / static_cast<double>(factor);
  const double cell = std::expm1(out);
  const int64_t most = high.end() - 1 - low.first;
  int64_t d = std::max(least, high.first - low.end() + 1);
  int64_t terms = 0;
  for (; d <= most && std::exp(-static_cast<double>(d) * h) >= cell; ++d, ++terms) {
    const double gain = std::log1p(std::exp(-static_cast<double>(d) * h));
    const auto steps = static_cast<int64_t>(std::floor(gain / out));
    Split weight = split(std::clamp(gain - static_cast<double>(steps) * out, 0.0, out), out);
    weight.lower *= times;
    weight.upper *= times;
    const int64_t from = std::max(high.first, low.first + d);
    const int64_t to = std::min(high.end(), low.end() + d);
    if (to <= from) continue;
    const int64_t place = from + steps / factor;
    add_products(&high.mass[static_cast<size_t>(from - high.first)],
                 &low.mass[static_cast<size_t>(from - d - low.first)], static_cast<size_t>(to - from), weight,
                 shares.lower(steps % factor, place), shares.upper(steps % factor, place));
  }
  if (d > most) return terms;

  // From here on the smaller value lifts the larger by less than a cell, in proportion to itself: running sums do.
  const double decay = std::exp(-h);
  const double entering = std::exp(-static_cast<double>(d) * h);
  const auto running = static_cast<int64_t>(2 * (low.mass.size() + high.mass.size()));
  const double doubt = 2 * kUnit * static_cast<double>(running + 16);
  double probability = 0;
  double mean = 0;  // relative to the larger value
  int64_t next = low.first;
  if (high.first - d >= low.first) {
    for (; next <= std::min(high.first - d, low.end() - 1); ++next) {
      const double m = low.mass[static_cast<size_t>(next - low.first)];
      probability += m;
      mean += m * std::exp(static_cast<double>(next - high.first) * h);
    }
  }
  for (int64_t i = high.first; i < high.end(); ++i) {
    if (i > high.first) {
      mean *= decay;
      if (next < low.end() && next == i - d) {
        const double m = low.mass[static_cast<size_t>(next - low.first)];
        probability += m;
        mean += m * entering;
        ++next;
      }
    }
    if (probability == 0) continue;
    const double m = times * high.mass[static_cast<size_t>(i - high.first)];
    const double lifted = mean / cell;
    *shares.lower(0, i) += m * (std::max(0.0, probability - lifted) + doubt * probability);
    *shares.upper(0, i) += m * lifted;
  }
  return terms + running;
}

// Adds the law where the other variable is 0; what lies below the sums proper goes to the lowest of them and 0. Returns
// what went to 0.
double add_alone(const SpreadLaw& law, double other_at_zero, Shares& shares) {
  double at_zero = 0;
  double lowest = 0;
  for (int64_t k = law.first; k < law.end(); ++k) {
    const double mass = other_at_zero * law.mass[static_cast<size_t>(k - law.first)];
    if (k >= shares.first()) {
      *shares.lower(0, k) += mass;
      continue;
    }
    const double down = static_cast<double>(shares.first() - k) * law.spacing;
    at_zero += mass * -std::expm1(-down);
    lowest += mass * std::exp(-down);
  }
  *shares.lower(0, shares.first()) += lowest;
  return at_zero;
}

// Where ln(e^{ih} + e^{jh}) lies on the grid, rounded down.
int64_t index_of_sum(int64_t i, int64_t j, double spacing) {
  const double gain = std::log1p(std::exp(-static_cast<double>(std::abs(i - j)) * spacing));
  return std::max(i, j) + static_cast<int64_t>(std::floor(gain / spacing));
}

// Puts together what the shares hold, and counts what underflowed on the way as infinite.
SpreadLaw finished(const SpreadLaw& a, const SpreadLaw& b, int64_t factor, const Shares& shares, int64_t terms,
                   double at_zero) {
  SpreadLaw law;
  law.spacing = a.spacing / static_cast<double>(factor);
  law.first = shares.first() * factor;
  law.mass = shares.collected();
  const double lost = 4 * kLeast * static_cast<double>(a.mass.size() + 1) * static_cast<double>(b.mass.size() + 1);
  law.at_zero = a.at_zero * b.at_zero + at_zero + lost;
  law.at_infinity = (a.at_infinity + b.at_infinity) * (1 + 2 * kUnit) + lost * value_at(law, law.end());
  const double errors = a.relative_error + b.relative_error + a.relative_error * b.relative_error;
  law.relative_error = (errors + kUnit * static_cast<double>(terms + 32)) * (1 + 1e-6);
  law.position_error = std::max(a.position_error, b.position_error) + 16 * kUnit;
  return law;
}

}  // namespace

SpreadLaw spread_lognormal(double mu, double log_divisor, double spacing, double tail) {
  const double reach = normal_quantile(tail);
  const double centre = mu * mu / 2;
  SpreadLaw law;
  law.spacing = spacing;
  law.first = static_cast<int64_t>(std::floor((-centre - mu * reach - log_divisor) / spacing));
  const auto last = static_cast<int64_t>(std::ceil((centre + mu * reach - log_divisor) / spacing));
  law.mass.assign(static_cast<size_t>(last - law.first + 1), 0.0);
  const auto loss_at = [&](int64_t k) {
    return static_cast<long double>(k) * spacing + static_cast<long double>(log_divisor);
  };
  // In standard deviations. On a coarse grid the outer cells reach beyond, where next to nothing lies.
  const double lowest = -reach - 6;
  const double highest = reach + mu + 6;
  for (int64_t k = law.first; k < last; ++k) {
    const auto low_end = static_cast<double>((loss_at(k) + centre) / mu);
    const double from = std::max(lowest, low_end);
    const double to = std::min(highest, low_end + spacing / mu);
    if (to <= from) continue;
    // The 10th derivative is at most (|y| + 2 + μ)^10 of the density, and some twenty times that where a factor vanishes
    // at one end: the remainder of 5 nodes on a piece of a quarter is below 1e-16.
    const double rate = std::max(std::abs(from), std::abs(to)) + 2 + mu;
    const auto pieces = static_cast<int64_t>(std::ceil((to - from) * rate / 0.25));
    const double radius = (to - from) / static_cast<double>(pieces) / 2;
    for (int64_t piece = 0; piece < pieces; ++piece) {
      for (size_t node = 0; node < 5; ++node) {
        const double along = radius * (static_cast<double>(2 * piece + 1) + GaussLegendre<5>::nodes[node]);
        const double y = from + along;
        const double mass =
            radius * GaussLegendre<5>::weights[node] * std::exp(-y * y / 2) / std::sqrt(2 * std::numbers::pi);
        const Split shares = split(std::min(spacing, mu * (from - low_end + along)), spacing);
        const auto i = static_cast<size_t>(k - law.first);
        law.mass[i] += mass * shares.lower;
        law.mass[i + 1] += mass * shares.upper;
      }
    }
  }
  const double left_below = std::max(kLeast, static_cast<double>(normal_tail(-lowest)));
  const double left_above = std::max(kLeast, static_cast<double>(normal_tail(highest)));
  for (size_t i = 0; i < 2; ++i) {
    law.mass[i] += left_below;
    law.mass[law.mass.size() - 1 - i] += left_above;
  }
  const auto bottom = static_cast<double>(loss_at(law.first));
  const auto top = static_cast<double>(loss_at(last));
  const Outside below = outside(mu, -bottom);
  law.mass.front() += below.at_end;
  law.at_zero = below.beyond;
  const Outside above = outside(mu, top);
  law.mass.back() += above.at_end * std::exp(-top);
  law.at_infinity = above.beyond * std::exp(-log_divisor) * (1 + 1e-13);
  // Densities err where y does: by a rounding of itself, and by one of the extended loss it is made from.
  const double size = 1 + log_divisor + centre + mu * reach;
  law.relative_error = 1e-13 + 4 * kUnit * highest * highest + highest * size / mu * 2e-19;
  law.position_error = 8 * kUnit * size;
  return law;
}

SpreadLaw sum(const SpreadLaw& a, const SpreadLaw& b, int64_t refinement) {
  Shares shares(index_of_sum(a.first, b.first, a.spacing) - 1, index_of_sum(a.end(), b.end(), a.spacing) + 3,
                refinement);
  const int64_t terms = add_pairs(a, b, 0, 1, refinement, shares) + add_pairs(b, a, 1, 1, refinement, shares);
  const double at_zero = add_alone(a, b.at_zero, shares) + add_alone(b, a.at_zero, shares);
  return finished(a, b, refinement, shares, terms, at_zero);
}

SpreadLaw sum_of_two(const SpreadLaw& a, int64_t refinement) {
  Shares shares(index_of_sum(a.first, a.first, a.spacing) - 1, index_of_sum(a.end(), a.end(), a.spacing) + 3,
                refinement);
  int64_t terms = add_pairs(a, a, 1, 2, refinement, shares);
  // Equal values: one difference only.
  const double out = a.spacing / static_cast<double>(refinement);
  const auto steps = static_cast<int64_t>(std::floor(std::numbers::ln2 / out));
  const Split weight = split(std::clamp(std::numbers::ln2 - static_cast<double>(steps) * out, 0.0, out), out);
  const int64_t place = a.first + steps / refinement;
  add_products(a.mass.data(), a.mass.data(), a.mass.size(), weight, shares.lower(steps % refinement, place),
               shares.upper(steps % refinement, place));
  const double at_zero = add_alone(a, 2 * a.at_zero, shares);
  return finished(a, a, refinement, shares, terms + 1, at_zero);
}

void trim(SpreadLaw& law, double mean, double probability) {
  const double up = 1 + law.relative_error + 1e-12;
  size_t size = law.mass.size();
  double cut = 0;
  while (size > 3) {
    cut += law.mass[size - 1] * value_at(law, law.first + static_cast<int64_t>(size) - 1);
    if (cut > mean) break;
    --size;
  }
  double ended = 0;
  const double end = value_at(law, law.first + static_cast<int64_t>(size) - 1);
  for (size_t i = law.mass.size() - 1; i >= size; --i) {
    ended += law.mass[i] * (1 + 1e-12);
    law.at_infinity += law.mass[i] * end * std::expm1(static_cast<double>(i + 1 - size) * law.spacing) * up;
  }
  law.mass.resize(size);
  law.mass.back() += ended;
  size_t below = 0;
  double sum = 0;
  while (below + 3 < law.mass.size() && sum + law.mass[below] <= probability) sum += law.mass[below++];
  double kept = 0;
  for (size_t i = 0; i < below; ++i) {
    const double down = static_cast<double>(below - i) * law.spacing;
    kept += law.mass[i] * std::exp(-down) * up;
    law.at_zero += law.mass[i] * -std::expm1(-down) * up;
  }
  law.mass[below] += kept;
  law.mass.erase(law.mass.begin(), law.mass.begin() + static_cast<int64_t>(below));
  law.first += static_cast<int64_t>(below);
}

void coarsen(SpreadLaw& law) {
  const double h = law.spacing;
  const Split middle = split(h, 2 * h);
  const int64_t first = (law.first - (law.first & 1)) / 2;
  const int64_t last = (law.end() + (law.end() & 1)) / 2;
  std::vector<double> mass(static_cast<size_t>(last - first + 1));
  for (int64_t k = law.first; k < law.end(); ++k) {
    const double m = law.mass[static_cast<size_t>(k - law.first)];
    const int64_t below = (k - (k & 1)) / 2;
    const auto place = static_cast<size_t>(below - first);
    if ((k & 1) == 0) {
      mass[place] += m;
    } else {
      mass[place] += m * middle.lower;
      mass[place + 1] += m * middle.upper;
    }
  }
  law.spacing = 2 * h;
  law.first = first;
  law.mass = std::move(mass);
  law.relative_error += 16 * kUnit;
}

SpreadLaw refined(SpreadLaw law, int64_t factor) {
  if (factor == 1) return law;
  std::vector<double> mass((law.mass.size() - 1) * static_cast<size_t>(factor) + 1);
  for (size_t i = 0; i < law.mass.size(); ++i) mass[i * static_cast<size_t>(factor)] = law.mass[i];
  law.mass = std::move(mass);
  law.first *= factor;
  law.spacing /= static_cast<double>(factor);
  return law;
}

}  // namespace sotto::privacy
