#include "privacy/accounting/tilted_composition.h"

#include "privacy/accounting/fourier.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>

namespace sotto::privacy {
namespace {

constexpr double kUnit = std::numeric_limits<double>::epsilon();
constexpr double kInfinity = std::numeric_limits<double>::infinity();
// Frequencies at which the composed spectrum is below e^kLeastLog are taken as 0 and counted as error.
constexpr double kLeastLog = -60;
// More than everything that underflowed, relative to sums of size 1.
constexpr double kUnderflow = 1e-290;

double log_add(double a, double b) {
  const double high = std::max(a, b);
  return high == -kInfinity ? high : high + std::log1p(std::exp(std::min(a, b) - high));
}

struct Tilted {
  double log_moment = 0;  // ln Σ p_k e^{λkh}
  double error = 0;       // relative error of the moment and of each tilted mass
};

// Calls take(index, p_k e^{λkh - scale}) for each grid point, the mass below the grid included.
template <typename F>
void for_each_tilted(const LossGrid& grid, double tilt, double scale, const F& take) {
  for (size_t i = 0; i < grid.mass.size(); ++i) {
    const double mass = grid.mass[i] + (i == 2 ? grid.p_below : 0);
    if (mass == 0) continue;
    const int64_t k = grid.first + static_cast<int64_t>(i);
    take(k, mass * std::exp(tilt * static_cast<double>(k) * grid.spacing - scale));
  }
}

int64_t highest_index(const LossGrid& grid) {
  size_t size = grid.mass.size();
  while (size > 3 && grid.mass[size - 1] == 0) --size;
  return grid.first + static_cast<int64_t>(size) - 1;
}

Tilted log_moment(const LossGrid& grid, double tilt) {
  double highest = -kInfinity;  // any scale near the largest will do
  const size_t stride = grid.mass.size() / 4096 + 1;
  for (size_t i = 0; i<grid.mass.size(); i += grid.mass[i]> 0 ? stride : 1) {
    const double loss = static_cast<double>(grid.first + static_cast<int64_t>(i)) * grid.spacing;
    if (grid.mass[i] > 0) highest = std::max(highest, tilt * loss + std::log(grid.mass[i]));
  }
  double sum = 0;
  double partial_sums = 0;
  for_each_tilted(grid, tilt, highest, [&](int64_t, double mass) {
    sum += mass;
    partial_sums += sum;
  });
  const double reach = tilt * grid.spacing *
                       static_cast<double>(std::max(std::abs(grid.first),
                                                    std::abs(grid.first + static_cast<int64_t>(grid.mass.size()))));
  const double summation = kUnit * std::min(partial_sums / sum, static_cast<double>(grid.mass.size()));
  return {highest + std::log(sum), summation + kUnit * (8 + 2 * std::abs(highest) + 2 * reach)};
}

}  // namespace

TiltedComposition::TiltedComposition(std::span<const CountedGrid> grids, const Window& window) {
  spacing_ = grids.front().grid.spacing;
  tilt_ = window.tilt;
  compose(grids, window);
}

void TiltedComposition::compose(std::span<const CountedGrid> grids, const Window& window) {
  RealFourier fourier(RealFourier::good_size(window.length / spacing_ + 8));
  const auto size = static_cast<int64_t>(fourier.size());
  const double root_size = std::sqrt(static_cast<double>(size));
  first_ = static_cast<int64_t>(std::floor(window.bottom / spacing_));

  const size_t half = fourier.spectrum().size();
  std::vector<std::complex<double>> log_product(half, 0.0);
  std::vector<double> log_bound(half, 0.0);  // ln Π (|F| + error)^count
  double log_moments = 0;
  double relative_error = 0;
  double log_above = 0;
  double total_count = 0;
  double log_kept = 0;  // ln of the probability that nothing is revealed
  double highest = 0;   // composed index above which there is no mass
  for (const CountedGrid& entry : grids) {
    const auto count = static_cast<double>(entry.count);
    const Tilted moment = log_moment(entry.grid, tilt_);
    log_moments += count * moment.log_moment;
    relative_error += count * 2 * moment.error;
    total_count += count;
    log_kept += count * std::log1p(-entry.grid.p_at_infinity);
    highest += count * static_cast<double>(highest_index(entry.grid));
    shift_ += count * entry.grid.position_error;
    const Tilted above = log_moment(entry.grid, window.chernoff_tilt);
    log_above += count * (above.log_moment + above.error);

    std::fill(fourier.values().begin(), fourier.values().end(), 0.0);
    for_each_tilted(entry.grid, tilt_, moment.log_moment, [&](int64_t k, double mass) {
      fourier.values()[static_cast<size_t>(((k % size) + size) % size)] += mass;
    });
    double squares = 0;
    for (const double mass : fourier.values()) squares += mass * mass;
    // The tilted masses sum to 1.
    const double error = fourier.relative_error() * std::min(1.0, root_size * std::sqrt(squares)) * (1 + 1e-9);
    fourier.forward();
    const double negligible = std::max(0.0, std::exp(kLeastLog / count) - error);
    for (size_t i = 0; i < half; ++i) {
      const std::complex<double> value = fourier.spectrum()[i];
      const double power = std::norm(value);
      if (power <= negligible * negligible || log_bound[i] == -kInfinity) {
        log_bound[i] = -kInfinity;
        continue;
      }
      const double magnitude = std::sqrt(power);
      log_product[i] += count * std::complex<double>(std::log(magnitude), std::arg(value));
      log_bound[i] += count * std::log(magnitude + error);
    }
  }

  // Powers: each logarithm is off by at most 4 roundings of itself and its phase, each of at most π.
  const double power_error = std::min(1.0, 16 * kUnit * (total_count + 1));
  double pointwise = 0;
  for (size_t i = 0; i < half; ++i) {
    const bool own_mirror = i == 0 || (size % 2 == 0 && i == half - 1);
    if (log_bound[i] == -kInfinity) {
      fourier.spectrum()[i] = 0;
      pointwise += 2 * std::exp(kLeastLog + 1);
      continue;
    }
    const double magnitude = std::exp(log_product[i].real());
    pointwise += (own_mirror ? 1 : 2) *
                 (std::max(0.0, std::exp(log_bound[i]) * (1 + power_error) - magnitude) + magnitude * power_error);
    fourier.spectrum()[i] = std::polar(magnitude, std::remainder(log_product[i].imag(), 2 * M_PI));
  }
  pointwise = pointwise / static_cast<double>(size) + kUnderflow;
  fourier.backward();

  const int64_t used = std::min(size, static_cast<int64_t>(std::ceil(window.height / spacing_)) + 4);
  sums_.resize(static_cast<size_t>(used));
  next_sums_.resize(static_cast<size_t>(used));
  double squares = 0;
  long double sum = 0;
  long double next_sum = 0;
  const long double step_down = std::exp(-static_cast<long double>(spacing_));
  for (const double mass : fourier.values()) squares += mass * mass;
  for (int64_t i = used - 1; i >= 0; --i) {
    const int64_t k = first_ + i;
    const double mass = std::max(0.0, fourier.values()[static_cast<size_t>(((k % size) + size) % size)]);
    const double above = static_cast<double>(i) * spacing_;
    const double weighted = mass * std::exp(-tilt_ * above);
    sum += weighted;
    next_sum = weighted + step_down * next_sum;
    sums_[static_cast<size_t>(i)] = static_cast<double>(sum);
    next_sums_[static_cast<size_t>(i)] = static_cast<double>(next_sum);
  }

  // The weight of loss ε + t in δ(ε) is e^{-λt}(1 - e^{-t}): its sum and its norm over the window.
  double weights = 0;
  double weight_squares = 0;
  for (int64_t i = 0; i < size; ++i) {
    const double t = static_cast<double>(i) * spacing_;
    const double weight = std::exp(-tilt_ * t) * -std::expm1(-t - spacing_);
    weights += weight;
    weight_squares += weight * weight;
    if (weight < 1e-18 * weights) break;
  }
  const double norm = std::sqrt(squares) + pointwise * root_size;
  rounding_ = 1.001 * (pointwise * weights + fourier.relative_error() * norm * std::sqrt(weight_squares));
  const double bottom = static_cast<double>(first_) * spacing_;
  const double top = bottom + static_cast<double>(used) * spacing_;
  log_scale_ =
      log_moments - tilt_ * bottom + relative_error + kUnit * (std::abs(log_moments) + tilt_ * std::abs(bottom));
  const bool holds_all = highest < static_cast<double>(first_ + used);
  const double above_window = holds_all ? -kInfinity
                                        : log_above - window.chernoff_tilt * top +
                                              4 * kUnit * (std::abs(log_above) + window.chernoff_tilt * std::abs(top));
  log_added_ = log_add(std::log(-std::expm1(log_kept)), above_window) + 1e-14;
}

double TiltedComposition::unshifted_log_delta(double epsilon) const {
  const double from_first = epsilon / spacing_ - static_cast<double>(first_);
  const auto index = static_cast<size_t>(std::max(0.0, std::floor(from_first) + 1));
  if (index >= sums_.size()) return 0;
  const double above = std::max(0.0, epsilon - static_cast<double>(first_) * spacing_);
  const double to_next = std::min(0.0, above - static_cast<double>(index) * spacing_);
  // The rounding term was bounded for masses at weights relative to ε, hence e^{-λ·above}.
  const double bound = std::max(0.0, sums_[index] - std::exp(to_next) * next_sums_[index]) +
                       rounding_ * std::exp(-tilt_ * above) + kUnderflow +
                       16 * kUnit * sums_[index] * (1 + (1 + tilt_) * above);
  return std::min(0.0, log_add(log_scale_ + std::log(bound), log_added_));
}

double TiltedComposition::log_delta(double epsilon) const {
  return unshifted_log_delta(epsilon - shift_);
}

double TiltedComposition::slope(double epsilon) const {
  const double width = std::max(4 * spacing_, 1e-3 * std::abs(epsilon));
  return std::max(1e-3, (log_delta(epsilon) - log_delta(epsilon + width)) / width);
}

double TiltedComposition::epsilon(double log_delta) const {
  double low = static_cast<double>(first_) * spacing_;
  double high = low + static_cast<double>(sums_.size() - 2) * spacing_;
  if (unshifted_log_delta(low) <= log_delta) return low + shift_;
  if (unshifted_log_delta(high) > log_delta) return kInfinity;
  for (int i = 0; i < 100 && high - low > 1e-13 * std::abs(high); ++i) {
    const double middle = (low + high) / 2;
    (unshifted_log_delta(middle) <= log_delta ? high : low) = middle;
  }
  return high + shift_;
}

}  // namespace sotto::privacy
