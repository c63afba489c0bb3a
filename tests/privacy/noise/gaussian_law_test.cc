// The law of the integers round(N(0, s²)): statistics that a right sampler passes and wrong ones do not.
#include "goodness.h"
#include "privacy/noise/gaussian.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sotto::privacy {
namespace {

constexpr size_t kDraws = size_t{1} << 21;

std::vector<int64_t> integers(int log2_scale, uint64_t round, size_t count = kDraws) {
  std::vector<int64_t> drawn(count);
  NoiseSource source = NoiseSource::replay(99, "law", round, 0);
  gaussian_integers(drawn, log2_scale, source);
  return drawn;
}

std::vector<double> in_standard_deviations(const std::vector<int64_t>& drawn, int log2_scale) {
  std::vector<double> x;
  x.reserve(drawn.size());
  for (const int64_t y : drawn) x.push_back(std::ldexp(static_cast<double>(y), -log2_scale));
  return x;
}

std::vector<double> normal_sample(uint64_t round) {
  return in_standard_deviations(integers(24, round), 24);
}

MATCHER(IsPlausible, "every statistic plausible") {
  for (const auto& [name, p] : arg) *result_listener << name << " " << p << ", ";
  return smallest(arg) > kPlausible;
}

TEST(GaussianLaw, IsNormalOnEveryScale) {
  for (const int log2_scale : {20, 29, 44}) {
    EXPECT_THAT(normality(in_standard_deviations(integers(log2_scale, 1), log2_scale)), IsPlausible()) << log2_scale;
  }
}

TEST(GaussianLaw, LowOrderBitsAreUniform) {
  for (const int log2_scale : {20, 44}) {
    std::vector<double> seen(1024), due(1024, kDraws / 1024.0);
    for (const int64_t y : integers(log2_scale, 2)) seen[static_cast<uint64_t>(y) % 1024] += 1;
    EXPECT_GT(chi_square_p(seen, due), kPlausible) << log2_scale;
  }
}

// Where within an interval of s/64 the magnitude falls, by sign: a flaw at the boxes' edges would show.
TEST(GaussianLaw, HasNoSeamsAtTheEdgesOfBoxes) {
  constexpr int kParts = 32;
  std::vector<double> seen(2 * kParts), due(2 * kParts);
  for (const double x : normal_sample(3)) {
    const double within = std::abs(x) * 64 - std::floor(std::abs(x) * 64);
    seen[static_cast<size_t>(within * kParts) + (x < 0 ? kParts : 0)] += 1;
  }
  for (int interval = 0; interval < 640; ++interval) {
    for (int part = 0; part < kParts; ++part) {
      const double low = (interval + static_cast<double>(part) / kParts) / 64, high = low + 1.0 / (64 * kParts);
      const double mass = normal_cdf(-low) - normal_cdf(-high);
      due[part] += kDraws * mass;
      due[part + kParts] += kDraws * mass;
    }
  }
  EXPECT_GT(chi_square_p(seen, due), kPlausible);
}

// Interval by interval, among them those beyond the last box (4 s), which only the rest reaches.
TEST(GaussianLaw, FillsEveryInterval) {
  std::vector<double> seen(1024), due(1024);
  for (const double x : normal_sample(4)) seen[static_cast<size_t>(std::abs(x) * 64)] += 1;
  for (int i = 0; i < 1024; ++i) due[i] = 2 * kDraws * (normal_cdf(-i / 64.0) - normal_cdf(-(i + 1) / 64.0));
  EXPECT_GT(chi_square_p(seen, due), kPlausible);
}

TEST(GaussianLaw, HasFarTails) {
  constexpr int kRounds = 16;
  double beyond_4 = 0, beyond_5 = 0;
  std::vector<double> tail;
  for (int round = 0; round < kRounds; ++round) {
    for (const double x : normal_sample(100 + round)) {
      if (std::abs(x) <= 4) continue;
      tail.push_back(std::abs(x));
      beyond_4 += 1;
      beyond_5 += std::abs(x) > 5 ? 1 : 0;
    }
  }
  const double draws = static_cast<double>(kDraws) * kRounds;
  EXPECT_GT(p_of_count(beyond_4, draws, 2 * normal_cdf(-4)), kPlausible);
  EXPECT_GT(p_of_count(beyond_5, draws, 2 * normal_cdf(-5)), kPlausible);
  EXPECT_GT(kolmogorov_smirnov_p(tail, [](double x) { return 1 - normal_cdf(-x) / normal_cdf(-4); }), kPlausible);
}

TEST(GaussianLaw, ZeroIsNotCountedTwice) {
  constexpr int kRounds = 16;
  std::map<int64_t, double> near_zero;
  for (int round = 0; round < kRounds; ++round) {
    for (const int64_t y : integers(20, 200 + round)) {
      if (std::abs(y) < 512) near_zero[y >= 0 ? y / 64 : (y + 1) / 64 - 1] += 1;
    }
  }
  std::vector<double> seen, due;
  for (const auto& [cell, count] : near_zero) {
    seen.push_back(count);
    due.push_back(static_cast<double>(kDraws) * kRounds * 64 / std::sqrt(2 * M_PI) / 0x1p20);
  }
  EXPECT_EQ(seen.size(), 16u);
  EXPECT_GT(chi_square_p(seen, due), kPlausible);
}

// Negative controls: each of these must be caught by the very statistics above.
TEST(BrokenSamplers, TooLittleNoise) {
  std::vector<double> x = normal_sample(5);
  for (double& v : x) v *= 0.98;
  EXPECT_LT(smallest(normality(x)), kRefuted);
}

TEST(BrokenSamplers, LopsidedSigns) {
  std::vector<double> x = normal_sample(5);
  for (size_t i = 0; i < x.size(); i += 100) x[i] = std::abs(x[i]);
  EXPECT_LT(smallest(normality(x)), kRefuted);
}

TEST(BrokenSamplers, TruncatedTails) {
  std::vector<double> x = normal_sample(5);
  for (double& v : x) v = std::clamp(v, -3.0, 3.0);
  EXPECT_LT(smallest(normality(x)), kRefuted);
  x = normal_sample(5);
  std::erase_if(x, [](double v) { return std::abs(v) > 3; });
  EXPECT_LT(smallest(normality(x)), kRefuted);
}

TEST(BrokenSamplers, OnlyTheCore) {
  std::vector<double> x = normal_sample(5);
  std::erase_if(x, [](double v) { return std::abs(v) > 230.0 / 64; });
  EXPECT_LT(smallest(normality(x)), kRefuted);
}

TEST(BrokenSamplers, RepeatedBlocks) {
  std::vector<double> x = normal_sample(5);
  for (size_t i = 2048; i < x.size(); i += 4096)
    std::copy_n(x.begin() + static_cast<int64_t>(i) - 2048, 2048, x.begin() + static_cast<int64_t>(i));
  EXPECT_LT(smallest(normality(x)), kRefuted);
}

TEST(BrokenSamplers, ReusedKey) {
  const std::vector<double> x = normal_sample(5);
  EXPECT_LT(correlation_p(x, normal_sample(5)), kRefuted);
  EXPECT_GT(correlation_p(x, normal_sample(6)), kPlausible);
}

}  // namespace
}  // namespace sotto::privacy
