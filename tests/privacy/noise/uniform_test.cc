#include "privacy/noise/uniform.h"

#include "goodness.h"

#include <gtest/gtest.h>

namespace sotto::privacy {
namespace {

NoiseSource source_named(const char* purpose) {
  return NoiseSource::replay(17, purpose, 0, 0);
}

TEST(UniformBelow, IsUniform) {
  NoiseSource source = source_named("below");
  std::vector<double> seen(7), due(7, 100000.0 / 7);
  for (int i = 0; i < 100000; ++i) seen.at(uniform_below(7, source)) += 1;
  EXPECT_GT(chi_square_p(seen, due), kPlausible);
}

// Taking 2^64 draws modulo this bound would favour the lower half by two to one.
TEST(UniformBelow, IsUnbiasedForHugeBounds) {
  NoiseSource source = source_named("huge");
  const uint64_t bound = (uint64_t{1} << 63) + (uint64_t{1} << 62);
  double low = 0;
  for (int i = 0; i < 100000; ++i) low += uniform_below(bound, source) < bound / 3 ? 1 : 0;
  EXPECT_GT(p_of_count(low, 100000, 1.0 / 3), kPlausible);
}

TEST(Bernoulli, HasItsProbability) {
  for (const double p : {1e-4, 0.25, 1.0 / 3, 0.999}) {
    NoiseSource source = source_named("bernoulli");
    double hits = 0;
    for (int i = 0; i < 400000; ++i) hits += bernoulli(p, source) ? 1 : 0;
    EXPECT_GT(p_of_count(hits, 400000, p), kPlausible) << p;
  }
}

TEST(Bernoulli, IsExactAtTheEnds) {
  NoiseSource source = source_named("ends");
  for (int i = 0; i < 1000; ++i) {
    EXPECT_FALSE(bernoulli(0.0, source));
    EXPECT_TRUE(bernoulli(1.0, source));
    EXPECT_FALSE(bernoulli(0x1p-200, source));  // needs more than 64 bits to be possible at all
  }
}

TEST(BernoulliExpMinus, IsTheExponential) {
  for (const double gamma : {0.0, 0.125, 0.5, 1.0}) {
    NoiseSource source = source_named("exp");
    double hits = 0;
    for (int i = 0; i < 400000; ++i) {
      hits += bernoulli_exp_minus([&] { return bernoulli(gamma, source); }, source) ? 1 : 0;
    }
    if (gamma == 0) {
      EXPECT_EQ(hits, 400000);
    } else {
      EXPECT_GT(p_of_count(hits, 400000, std::exp(-gamma)), kPlausible) << gamma;
    }
  }
}

TEST(PoissonSample, TakesEachIndependently) {
  NoiseSource source = source_named("poisson");
  std::vector<double> sizes;
  double neighbours = 0;
  for (int i = 0; i < 2000; ++i) {
    const std::vector<int64_t> chosen = poisson_sample(500, 0.1, source);
    EXPECT_TRUE(std::is_sorted(chosen.begin(), chosen.end()));
    sizes.push_back((static_cast<double>(chosen.size()) - 50) / std::sqrt(45.0));
    for (size_t k = 1; k < chosen.size(); ++k) neighbours += chosen[k] == chosen[k - 1] + 1 ? 1 : 0;
  }
  double variance = 0;
  for (const double z : sizes) variance += z * z;
  EXPECT_GT(p_of_z((variance - 2000) / std::sqrt(2.0 * 2000)), kPlausible);  // a fixed size would have none
  EXPECT_NEAR(neighbours / (2000 * 499), 0.01, 0.0006);
}

}  // namespace
}  // namespace sotto::privacy
