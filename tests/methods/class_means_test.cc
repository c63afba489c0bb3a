#include "methods/prototypes/class_means.h"

#include "base/random.h"

#include <ATen/ATen.h>

#include <gtest/gtest.h>

#include <cmath>

namespace sotto::methods {
namespace {

at::Tensor normals(const std::string& purpose, std::vector<int64_t> sizes) {
  RandomStream stream(1, purpose);
  return at::empty(sizes, at::kDouble).normal_(0, 1, stream.torch_generator());
}

Frame plain(int64_t classes, int64_t width) {
  return {at::zeros({classes, width}), at::ones({width})};
}

TEST(ClassMeans, AreSumsOverCountsAroundTheirCentres) {
  ClassMeans means(2, 3);
  EXPECT_TRUE(means.empty());
  const at::Tensor centres = at::tensor({1.0, 2.0, 3.0, 4.0, 5.0, 6.0}).reshape({2, 3});
  const at::Tensor scale = at::tensor({1.0, 2.0, 4.0});
  means.add({centres, scale}, {.sums = at::full({2, 3}, 8.0), .counts = at::tensor({2.0, 4.0}), .sum_noise = 0.1});
  const at::Tensor expected =
      at::tensor({1.0 + 4, 2.0 + 2, 3.0 + 1, 4.0 + 2, 5.0 + 1, 6.0 + 0.5}, at::kDouble).reshape({2, 3});
  EXPECT_TRUE(at::allclose(means.unshrunk().means, expected));
  EXPECT_TRUE(at::allclose(means.counts(), at::tensor({2.0, 4.0}, at::kDouble)));
}

// A round with a quarter of another's noise variance counts four times as much.
TEST(ClassMeans, RoundsCountByTheInverseVarianceOfTheirNoise) {
  ClassMeans means(2, 1);
  const auto round = [](double value, double noise) {
    return NoisyClassSums{.sums = at::full({2, 1}, 10 * value), .counts = at::full({2}, 10.0), .sum_noise = noise};
  };
  means.add(plain(2, 1), round(0.0, 2.0));
  means.add(plain(2, 1), round(1.0, 1.0));
  EXPECT_NEAR(means.unshrunk().means[0][0].item<double>(), 0.8, 1e-9);
}

TEST(ClassMeans, ShrinkingComesNearerToTheTruth) {
  constexpr int64_t kClasses = 10, kWidth = 200;
  constexpr double kCount = 100;
  const at::Tensor truth = 0.05 * normals("truth", {kClasses, kWidth});
  for (const double noise : {0.0, 1.0, 10.0, 1000.0}) {
    const at::Tensor sums = kCount * truth + noise * normals("noise", {kClasses, kWidth});
    ClassMeans means(kClasses, kWidth);
    means.add(plain(kClasses, kWidth), {.sums = sums, .counts = at::full({kClasses}, kCount), .sum_noise = noise});
    const ClassEstimate known = means.shrunk();
    const double raw = (means.unshrunk().means - truth).norm().item<double>();
    const double drawn = (known.means - truth).norm().item<double>();
    const double length = truth.square().sum().item<double>(),
                 size = (raw * raw + 2 * raw * std::sqrt(length)) / std::sqrt(2000.0);
    EXPECT_NEAR(known.squares.sum().item<double>(), length, 4 * size + 1e-6) << "its length is known without noise";
    EXPECT_NEAR(known.risk.sum().item<double>(), drawn * drawn, 4 * size + 1e-6) << "and how far off it is";
    if (noise == 0) {
      EXPECT_LT(drawn, 1e-6);
    } else {
      EXPECT_LT(drawn, raw);
      EXPECT_LT(drawn, truth.norm().item<double>() + 0.15 * raw) << "hardly worse than saying nothing";
    }
  }
}

TEST(ClassMeans, ContinueFromTheirState) {
  ClassMeans one(3, 4), other(3, 4);
  const NoisyClassSums sums{.sums = normals("sums", {3, 4}), .counts = at::full({3}, 20.0), .sum_noise = 0.5};
  one.add(plain(3, 4), sums);
  other.restore(clone(one.state()));
  one.add(plain(3, 4), sums);
  other.add(plain(3, 4), sums);
  EXPECT_TRUE(at::equal(one.shrunk().means, other.shrunk().means));
  EXPECT_TRUE(at::equal(one.counts(), other.counts()));
}

// Clients whose records vary ten times as much along one direction as along all others.
Spread found(double noise, int64_t clients) {
  constexpr int64_t kClasses = 5, kWidth = 30;
  constexpr double kCount = 200;
  at::Tensor direction = normals("direction", {kWidth});
  direction /= direction.norm();
  RandomStream stream(3, "clients");
  at::Generator generator = stream.torch_generator();
  const auto draw = [&](std::vector<int64_t> sizes) { return at::empty(sizes, at::kDouble).normal_(0, 1, generator); };
  ClientScatter scatter(kClasses, kWidth);
  for (int64_t k = 0; k < clients; ++k) {
    // Sums of kCount records of variance 1 everywhere and 10 along the direction.
    at::Tensor sums = std::sqrt(kCount) * (draw({kClasses, kWidth}) + 3 * draw({kClasses, 1}) * direction);
    sums = sums + noise * draw({kClasses, kWidth});
    scatter.add({.sums = sums, .counts = at::full({kClasses}, kCount), .sum_noise = noise});
  }
  Spread spread = scatter.spread(1.0);
  if (spread.extra.numel() == 1) {
    EXPECT_GT(std::abs(at::dot(spread.directions[0], direction).item<double>()), 0.9);
  }
  return spread;
}

TEST(ClientScatter, FindsWhereRecordsSpreadMore) {
  for (const double noise : {0.0, 10.0}) {
    const Spread spread = found(noise, 60);
    ASSERT_EQ(spread.extra.numel(), 1) << "noise " << noise;
    EXPECT_NEAR(spread.extra[0].item<double>(), 9.0, 2.0) << "noise " << noise;
  }
}

TEST(ClientScatter, SaysNothingThatNoiseCouldHaveSaid) {
  EXPECT_EQ(found(1000.0, 60).extra.numel(), 0);
  EXPECT_EQ(found(0.0, 1).extra.numel(), 0) << "one client does not differ from itself";
}

TEST(Discriminant, IsTheNearestMeanWhereSpreadIsEven) {
  const at::Tensor means = normals("means", {4, 6}), x = normals("x", {50, 6});
  const Spread even{.level = 0.3, .directions = at::empty({0, 6}, at::kDouble), .extra = at::empty({0}, at::kDouble)};
  const LinearRule rule = discriminant(means, at::ones({4}), even, at::ones({6}));
  const at::Tensor logits = at::mm(x, rule.weight.t()) + rule.bias;
  EXPECT_TRUE(at::equal(logits.argmax(1), at::cdist(x, means).argmin(1)));
}

TEST(Discriminant, IsThatOfTheCovarianceInWhateverScale) {
  const at::Tensor means = 0.1 * normals("means", {3, 5}), scale = normals("scale", {5}).abs() + 0.5;
  at::Tensor direction = normals("direction", {1, 5});
  direction = direction / direction.norm();
  const Spread spread{.level = 0.7, .directions = direction, .extra = at::full({1}, 4.0, at::kDouble)};
  const at::Tensor counts = at::tensor({1.0, 2.0, 5.0});
  const LinearRule rule = discriminant(means, counts, spread, scale);
  const at::Tensor scaled = 0.7 * at::diag(scale.square()) + 4.0 * at::mm(direction.t(), direction);
  const at::Tensor covariance = scaled / at::outer(scale, scale);
  const at::Tensor weight = at::linalg_solve(covariance, means.t()).t();
  EXPECT_TRUE(at::allclose(rule.weight, weight, 1e-9));
  const at::Tensor bias = (counts / 8.0).log().to(at::kDouble) - 0.5 * (weight * means).sum(1);
  EXPECT_TRUE(at::allclose(rule.bias, bias, 1e-7));
}

TEST(Discriminant, IsNotSurerThanItMayBe) {
  const at::Tensor means = 100 * normals("means", {3, 5});
  const Spread even{.level = 1.0, .directions = at::empty({0, 5}, at::kDouble), .extra = at::empty({0}, at::kDouble)};
  const LinearRule rule = discriminant(means, at::ones({3}), even, at::ones({5}));
  const at::Tensor logits = at::mm(means, rule.weight.t()) + rule.bias;
  const at::Tensor gaps = logits.diagonal().unsqueeze(1) - logits;
  EXPECT_NEAR(gaps.sum().item<double>() / 6, 8.0, 1e-6);
}

}  // namespace
}  // namespace sotto::methods
