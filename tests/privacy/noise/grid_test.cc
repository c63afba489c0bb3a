#include "privacy/noise/grid.h"

#include "../../support/expect_user_error.h"
#include "privacy/noise/gaussian.h"

#include <cmath>
#include <limits>

namespace sotto::privacy {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(NoiseGrid, RoundingCostsAThousandthAtMost) {
  for (const double multiplier : {0.01, 1.0, 300.0}) {
    for (const size_t count : {size_t{1}, size_t{1000}, size_t{11200000}}) {
      const double sensitivity = 0.37;
      const NoiseGrid gaussian = gaussian_grid(multiplier * sensitivity, sensitivity, count);
      const double charged = charged_l2_sensitivity(gaussian, sensitivity, count);
      EXPECT_GT(charged, sensitivity + gaussian.step * std::sqrt(static_cast<double>(count)));
      EXPECT_LT(charged, sensitivity * 1.001);
      EXPECT_DOUBLE_EQ(gaussian.noise_scale(), multiplier * sensitivity);
    }
  }
  const NoiseGrid laplace = laplace_grid(10.0, 0.5, 1000);
  EXPECT_GT(charged_l1_sensitivity(laplace, 0.5, 1000), 0.5 + laplace.step * 1000);
  EXPECT_LT(charged_l1_sensitivity(laplace, 0.5, 1000), 0.5 * 1.001);
}

// The charge is what the proof needs: quantised neighbours never differ by more than it says.
TEST(NoiseGrid, ChargeCoversTheWorstRounding) {
  NoiseSource source = NoiseSource::replay(1, "grid", 0, 0);
  const NoiseGrid grid = make_grid(0.7, 20);
  const double inverse = 1 / grid.step;
  for (int i = 0; i < 100000; ++i) {
    const double x = (static_cast<double>(source.bits() >> 11) * 0x1p-52 - 1) * grid.largest_value();
    const double y = x + (static_cast<double>(source.bits() >> 11) * 0x1p-51 - 2) * 3 * grid.step;
    if (std::abs(y) > grid.largest_value()) continue;
    const double moved = std::abs(std::nearbyint(x * inverse) - std::nearbyint(y * inverse)) * grid.step;
    EXPECT_LE(moved, charged_l2_sensitivity(grid, std::abs(x - y), 1));
  }
}

TEST(NoiseGrid, RefusesNonsense) {
  for (const double bad : {0.0, -1.0, kNaN, kInfinity}) {
    EXPECT_USER_ERROR(gaussian_grid(bad, 1.0, 10), "positive, finite scale");
    EXPECT_USER_ERROR(gaussian_grid(1.0, bad, 10), "positive, finite sensitivity");
    EXPECT_USER_ERROR(laplace_grid(bad, 1.0, 10), "positive, finite scale");
    EXPECT_USER_ERROR(make_grid(bad, 24), "positive, finite scale");
  }
  EXPECT_USER_ERROR(gaussian_grid(1e12, 1.0, 1000000), "too large for a sensitivity");
  EXPECT_USER_ERROR(make_grid(1.0, 19), "2^20 to 2^44");
  EXPECT_USER_ERROR(make_grid(1.0, 45), "2^20 to 2^44");
  EXPECT_USER_ERROR(make_grid(1e-31, 24), "single precision");
}

}  // namespace
}  // namespace sotto::privacy
