#include "privacy/noise/grid.h"

#include "base/error.h"
#include "privacy/noise/gaussian_rest.h"

#include <algorithm>
#include <cmath>

namespace sotto::privacy {
namespace {

constexpr int kLog2LargestQuotient = 46;
constexpr int kLog2Fineness = 10;
constexpr double kRoundUp = 1 + 0x1p-48;  // more than the roundings of the few operations it follows

void require_positive(double value, const char* name) {
  if (!(std::isfinite(value) && value > 0)) {
    fail_user(
        "Noise needs a positive, finite {}, not {}: check the noise multiplier and the bound it is multiplied with",
        name, value);
  }
}

// `growth` = the norm of the all-ones vector: what a step in every coordinate adds up to.
NoiseGrid fine_grid(double noise_scale, double sensitivity, double growth) {
  require_positive(noise_scale, "scale");
  require_positive(sensitivity, "sensitivity");
  const double needed = std::ceil(std::log2(noise_scale / sensitivity * std::max(growth, 1.0))) + kLog2Fineness;
  if (!(needed <= kMaxLog2Scale)) {
    fail_user("Noise of scale {} is too large for a sensitivity of {} over so many values: lower the noise multiplier",
              noise_scale, sensitivity);
  }
  return make_grid(noise_scale, std::max(static_cast<int>(std::max(needed, -1e6)), kMinLog2Scale));
}

double charge(const NoiseGrid& grid, double sensitivity, double growth) {
  return (sensitivity + grid.step * growth * (1 + 0x1p-6)) * kRoundUp;
}

}  // namespace

double NoiseGrid::noise_scale() const {
  return std::ldexp(step, log2_scale);
}

double NoiseGrid::largest_value() const {
  return std::ldexp(step, kLog2LargestQuotient);
}

NoiseGrid make_grid(double noise_scale, int log2_scale) {
  require_positive(noise_scale, "scale");
  if (noise_scale < 1e-30 || noise_scale > 1e30) {
    fail_user("Noise of scale {} does not fit single precision: rescale the values", noise_scale);
  }
  if (log2_scale < kMinLog2Scale || log2_scale > kMaxLog2Scale) {
    fail_user("A noise grid must divide the noise's scale by 2^{} to 2^{}, not 2^{}", kMinLog2Scale, kMaxLog2Scale,
              log2_scale);
  }
  return {std::ldexp(noise_scale, -log2_scale), log2_scale};
}

NoiseGrid gaussian_grid(double stddev, double sensitivity, size_t count) {
  return fine_grid(stddev, sensitivity, std::sqrt(static_cast<double>(count)));
}

NoiseGrid laplace_grid(double scale, double sensitivity, size_t count) {
  return fine_grid(scale, sensitivity, static_cast<double>(count));
}

double charged_l2_sensitivity(const NoiseGrid& grid, double sensitivity, size_t count) {
  return charge(grid, sensitivity, std::sqrt(static_cast<double>(count)));
}

double charged_l1_sensitivity(const NoiseGrid& grid, double sensitivity, size_t count) {
  return charge(grid, sensitivity, static_cast<double>(count));
}

}  // namespace sotto::privacy
