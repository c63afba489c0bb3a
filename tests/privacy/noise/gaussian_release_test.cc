#include "../../support/expect_user_error.h"
#include "goodness.h"
#include "privacy/noise/gaussian.h"
#include "privacy/noise/gaussian_block.h"

#include <gtest/gtest.h>

#include <limits>
#include <thread>

namespace sotto::privacy {
namespace {

NoiseSource source_named(const char* purpose) {
  return NoiseSource::replay(4, purpose, 0, 0);
}

std::vector<float> some_values(size_t count) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = std::sin(static_cast<float>(i)) * 3;
  return values;
}

TEST(GaussianRelease, IsTheQuantisedValuePlusTheNoise) {
  const NoiseGrid grid = make_grid(0.8, 22);
  std::vector<float> values = some_values(5001);
  std::vector<double> zeros(values.size(), 0.0);
  const std::vector<float> before = values;
  NoiseSource a = source_named("sum"), b = source_named("sum");
  add_gaussian(std::span(values), grid, a);
  add_gaussian(std::span(zeros), grid, b);
  for (size_t i = 0; i < values.size(); ++i) {
    const double quantised = std::nearbyint(before[i] * (1 / grid.step));
    const double noise = std::nearbyint(zeros[i] / grid.step);
    ASSERT_EQ(values[i], static_cast<float>((quantised + noise) * grid.step)) << i;
  }
}

TEST(GaussianRelease, SaysWhatItDid) {
  std::vector<float> values(1000);
  NoiseSource source = source_named("said");
  const GridNoise noise = add_gaussian(std::span(values), 2.0, 1.0, source);
  EXPECT_DOUBLE_EQ(noise.grid * noise.scale, 2.0);
  EXPECT_GT(noise.total_variation, 0.0);
  EXPECT_LT(noise.total_variation * 11200 * 1000, 1e-30);
}

TEST(GaussianRelease, HasTheRightLawAroundAnyValue) {
  for (const float centre : {0.0F, 1000.25F}) {
    std::vector<float> values(size_t{1} << 21, centre);
    NoiseSource source = source_named("law");
    add_gaussian(std::span(values), 50.0, 0.1, source);
    std::vector<double> x;
    for (const float v : values) x.push_back((static_cast<double>(v) - centre) / 50);
    EXPECT_GT(smallest(normality(x)), kPlausible) << centre;
  }
}

TEST(GaussianRelease, DoesNotDependOnThreads) {
  const NoiseGrid grid = make_grid(1.0, 24);
  std::vector<float> whole = some_values(3 * GaussianNoise::kChunk + 777);
  std::vector<float> shared = whole;
  NoiseSource a = source_named("threads"), b = source_named("threads");
  add_gaussian(std::span(whole), grid, a);

  const GaussianNoise noise(grid, b);
  const auto add_chunk = [&](size_t chunk) {
    const size_t begin = chunk * GaussianNoise::kChunk;
    noise.add_to_chunk(chunk, std::span(shared).subspan(begin, std::min(GaussianNoise::kChunk, shared.size() - begin)));
  };
  std::thread other([&] {
    add_chunk(3);
    add_chunk(1);
  });
  add_chunk(2);
  add_chunk(0);
  other.join();
  EXPECT_EQ(whole, shared);
}

TEST(GaussianRelease, IsTheSameOnEveryInstructionSet) {
  const auto sets = runnable_noise_kernels();
  for (const int log2_scale : {20, 33, 44}) {
    for (const size_t count : {size_t{2048}, size_t{1001}, size_t{3}}) {
      std::vector<std::vector<float>> floats;
      std::vector<std::vector<double>> doubles;
      std::vector<std::vector<int64_t>> integers;
      for (const NoiseKernels* kernels : sets) {
        GaussianBlock block(*kernels);
        NoiseSource source = source_named("kernels");
        std::vector<float> f = some_values(count);
        std::vector<double> d(f.begin(), f.end());
        std::vector<int64_t> n(count);
        for (int repeat = 0; repeat < 20; ++repeat) {
          block.draw(count, log2_scale, source);
          const double step = std::ldexp(0.9, -log2_scale);
          block.add_to(std::span(f), step, 1 / step);
          block.add_to(std::span(d), step, 1 / step);
          block.copy_to(n);
        }
        floats.push_back(f);
        doubles.push_back(d);
        integers.push_back(n);
      }
      for (size_t k = 1; k < sets.size(); ++k) {
        EXPECT_EQ(floats[k], floats[0]) << sets[k]->name;
        EXPECT_EQ(doubles[k], doubles[0]) << sets[k]->name;
        EXPECT_EQ(integers[k], integers[0]) << sets[k]->name;
      }
    }
  }
}

// Runs must be repeatable by later builds.
TEST(GaussianRelease, KeepsItsNumbers) {
  std::vector<int64_t> drawn(2048);
  NoiseSource source = source_named("pinned");
  gaussian_integers(drawn, 30, source);
  int64_t sum = 0;
  for (const int64_t y : drawn) sum += y;
  EXPECT_EQ(drawn[0], -1270384618);
  EXPECT_EQ(sum, 66381584116);
}

TEST(GaussianRelease, RefusesWhatHasNoPlaceOnTheGrid) {
  const NoiseGrid grid = make_grid(1.0, 30);
  for (const double bad :
       {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(),
        -std::numeric_limits<double>::infinity(), 2 * grid.largest_value(), -2 * grid.largest_value()}) {
    for (const size_t where : {size_t{0}, size_t{5000}, size_t{9999}}) {
      std::vector<float> floats = some_values(10000);
      std::vector<double> doubles(floats.begin(), floats.end());
      floats[where] = static_cast<float>(bad);
      doubles[where] = bad;
      const std::vector<float> before = floats;
      NoiseSource used = source_named("refused"), fresh = source_named("refused");
      EXPECT_USER_ERROR(add_gaussian(std::span(floats), grid, used), "NaN, infinite or larger");
      EXPECT_USER_ERROR(add_gaussian(std::span(doubles), grid, used), "NaN, infinite or larger");
      EXPECT_EQ(used.bits(), fresh.bits());  // nothing was drawn
      EXPECT_EQ(std::memcmp(before.data(), floats.data(), 4 * floats.size()), 0);
    }
  }
}

TEST(GaussianRelease, RefusesNoNoise) {
  std::vector<float> values(10);
  NoiseSource source = source_named("zero");
  EXPECT_USER_ERROR(add_gaussian(std::span(values), 0.0, 1.0, source), "positive, finite scale");
  EXPECT_USER_ERROR(add_gaussian(std::span(values), NoiseGrid{}, source), "positive, finite scale");
}

}  // namespace
}  // namespace sotto::privacy
