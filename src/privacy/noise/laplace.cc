#include "privacy/noise/laplace.h"

#include "privacy/noise/discrete.h"
#include "privacy/noise/value_check.h"

#include <cmath>

namespace sotto::privacy {
namespace {

template <typename Value>
GridNoise add(std::span<Value> values, const NoiseGrid& grid, NoiseSource& source) {
  require_on_grid(values, grid);
  const double inverse = 1 / grid.step;
  for (Value& value : values) {
    const double quantised = std::nearbyint(static_cast<double>(value) * inverse);
    const int64_t noisy = static_cast<int64_t>(quantised) + laplace_integer(grid.log2_scale, source);
    value = static_cast<Value>(static_cast<double>(noisy) * grid.step);
  }
  return {grid.step, std::ldexp(1.0, grid.log2_scale), 0.0};
}

}  // namespace

GridNoise add_laplace(std::span<float> values, double scale, double sensitivity, NoiseSource& source) {
  return add(values, laplace_grid(scale, sensitivity, values.size()), source);
}

GridNoise add_laplace(std::span<double> values, double scale, double sensitivity, NoiseSource& source) {
  return add(values, laplace_grid(scale, sensitivity, values.size()), source);
}

GridNoise add_laplace(std::span<float> values, const NoiseGrid& grid, NoiseSource& source) {
  return add(values, grid, source);
}

GridNoise add_laplace(std::span<double> values, const NoiseGrid& grid, NoiseSource& source) {
  return add(values, grid, source);
}

int64_t laplace_integer(int log2_scale, NoiseSource& source) {
  const uint64_t half_steps = geometric(uint64_t{2} << log2_scale, source);
  const auto magnitude = static_cast<int64_t>((half_steps + 1) / 2);
  return (source.bits() & 1) == 1 ? -magnitude : magnitude;
}

}  // namespace sotto::privacy
