// Noise of different rounds, clients, purposes and chunks is independent.
#include "goodness.h"
#include "privacy/noise/gaussian.h"

#include <gtest/gtest.h>

namespace sotto::privacy {
namespace {

constexpr size_t kDraws = size_t{1} << 18;

std::vector<double> noise(NoiseSource source, size_t count = kDraws) {
  std::vector<double> values(count, 0.0);
  add_gaussian(std::span(values), make_grid(1.0, 24), source);
  return values;
}

TEST(NoiseStreams, OfRoundsClientsPurposesAndSeedsAreIndependent) {
  const std::vector<double> base = noise(NoiseSource::replay(3, "update", 7, 11));
  EXPECT_GT(correlation_p(base, noise(NoiseSource::replay(3, "update", 8, 11))), kPlausible);
  EXPECT_GT(correlation_p(base, noise(NoiseSource::replay(3, "update", 7, 12))), kPlausible);
  EXPECT_GT(correlation_p(base, noise(NoiseSource::replay(3, "head", 7, 11))), kPlausible);
  EXPECT_GT(correlation_p(base, noise(NoiseSource::replay(4, "update", 7, 11))), kPlausible);
  EXPECT_GT(correlation_p(base, noise(NoiseSource::secure())), 1e-9);
  EXPECT_LT(correlation_p(base, noise(NoiseSource::replay(3, "update", 7, 11))), kRefuted);
}

TEST(NoiseStreams, OfChunksAreIndependent) {
  const std::vector<double> x = noise(NoiseSource::replay(3, "update", 7, 11), 3 * GaussianNoise::kChunk);
  const std::span<const double> all(x);
  for (const size_t a : {0, 1}) {
    const auto first = all.subspan(a * GaussianNoise::kChunk, GaussianNoise::kChunk);
    EXPECT_GT(correlation_p(first, all.subspan((a + 1) * GaussianNoise::kChunk, GaussianNoise::kChunk)), kPlausible);
  }
}

TEST(NoiseStreams, OfReleasesFromOneSourceAreIndependent) {
  NoiseSource source = NoiseSource::replay(3, "update", 7, 11);
  std::vector<double> first(kDraws), second(kDraws);
  add_gaussian(std::span(first), make_grid(1.0, 24), source);
  add_gaussian(std::span(second), make_grid(1.0, 24), source);
  EXPECT_GT(correlation_p(first, second), kPlausible);
}

}  // namespace
}  // namespace sotto::privacy
