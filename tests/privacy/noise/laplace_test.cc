#include "privacy/noise/laplace.h"

#include "../../support/expect_user_error.h"
#include "goodness.h"
#include "privacy/noise/discrete.h"

#include <gtest/gtest.h>

namespace sotto::privacy {
namespace {

NoiseSource source_named(const char* purpose) {
  return NoiseSource::replay(6, purpose, 0, 0);
}

double laplace_cdf(double x) {
  return x < 0 ? 0.5 * std::exp(x) : 1 - 0.5 * std::exp(-x);
}

std::vector<double> sample(double scale) {
  std::vector<double> values(300000, 5.0);
  NoiseSource source = source_named("law");
  add_laplace(std::span(values), scale, 1.0, source);
  for (double& v : values) v = (v - 5.0) / 2.0;
  return values;
}

TEST(Laplace, HasItsLaw) {
  std::vector<double> x = sample(2.0);
  std::vector<double> unit = x;
  for (double& v : unit) v /= std::sqrt(2.0);
  EXPECT_GT(serial_correlation_p(unit, 1), kPlausible);
  double beyond_8 = 0;
  for (const double v : x) beyond_8 += std::abs(v) > 8 ? 1 : 0;
  EXPECT_GT(p_of_count(beyond_8, static_cast<double>(x.size()), std::exp(-8.0)), kPlausible);
  EXPECT_GT(kolmogorov_smirnov_p(x, laplace_cdf), kPlausible);
}

TEST(Laplace, TooLittleNoiseIsNoticed) {
  std::vector<double> x = sample(2.0 * 0.95);
  EXPECT_LT(kolmogorov_smirnov_p(x, laplace_cdf), kRefuted);
}

// |Y| is the rounded exponential: P(0) = 1 - e^(-1/2t), not the two-sided geometric's (1-e^(-1/t))/(1+e^(-1/t)).
TEST(Laplace, IntegersAreRoundedNotGeometric) {
  constexpr uint64_t kScale = 3;
  NoiseSource source = source_named("rounded");
  std::vector<double> seen(30), due(30);
  for (int i = 0; i < 300000; ++i) {
    const uint64_t half_steps = geometric(2 * kScale, source);
    seen[std::min<uint64_t>((half_steps + 1) / 2, 29)] += 1;
  }
  for (int k = 0; k < 30; ++k) {
    const double low = k == 0 ? 0 : (k - 0.5) / kScale, high = (k + 0.5) / kScale;
    due[k] = 300000 * (std::exp(-low) - (k == 29 ? 0 : std::exp(-high)));
  }
  EXPECT_GT(chi_square_p(seen, due), kPlausible);
}

TEST(Laplace, LowOrderBitsAreUniform) {
  NoiseSource source = source_named("bits");
  std::vector<double> seen(256), due(256, 300000 / 256.0);
  for (int i = 0; i < 300000; ++i) seen[static_cast<uint64_t>(laplace_integer(20, source)) % 256] += 1;
  EXPECT_GT(chi_square_p(seen, due), kPlausible);
}

TEST(Laplace, PublishesMultiplesOfTheGrid) {
  std::vector<float> values(1000, 0.3F);
  NoiseSource source = source_named("grid");
  const GridNoise noise = add_laplace(std::span(values), 2.0, 1.0, source);
  for (const float v : values) EXPECT_EQ(v, static_cast<float>(std::nearbyint(v / noise.grid) * noise.grid));
  EXPECT_EQ(noise.total_variation, 0.0);
}

TEST(Laplace, RefusesNonsense) {
  std::vector<float> values = {1.0F, NAN};
  NoiseSource source = source_named("refused");
  EXPECT_USER_ERROR(add_laplace(std::span(values), 1.0, 1.0, source), "NaN, infinite or larger");
  EXPECT_USER_ERROR(add_laplace(std::span(values), 0.0, 1.0, source), "positive, finite scale");
}

}  // namespace
}  // namespace sotto::privacy
