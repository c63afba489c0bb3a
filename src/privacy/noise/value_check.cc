#include "privacy/noise/value_check.h"

#include "base/error.h"
#include "privacy/noise/kernels.h"

namespace sotto::privacy {
namespace {

void require(bool within, const NoiseGrid& grid) {
  if (within) return;
  fail_user(
      "A value to be released is NaN, infinite or larger than {} ({} times the noise): nothing was released. "
      "Bound values before noise is added, and check that training has not diverged",
      grid.largest_value(), grid.largest_value() / grid.noise_scale());
}

}  // namespace

void require_on_grid(std::span<const float> values, const NoiseGrid& grid) {
  make_grid(grid.noise_scale(), grid.log2_scale);
  const auto limit = static_cast<float>(grid.largest_value() * (1 - 0x1p-20));
  require(noise_kernels().floats_within(values.data(), values.size(), limit), grid);
}

void require_on_grid(std::span<const double> values, const NoiseGrid& grid) {
  make_grid(grid.noise_scale(), grid.log2_scale);
  require(noise_kernels().doubles_within(values.data(), values.size(), grid.largest_value()), grid);
}

}  // namespace sotto::privacy
