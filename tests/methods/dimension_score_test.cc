#include "methods/prototypes/dimension_score.h"

#include <ATen/ATen.h>

#include <gtest/gtest.h>

#include <cmath>

namespace sotto::methods {
namespace {

TEST(DimensionScore, IsTheAnovaOfAWorkedExample) {
  // Classes {1, 3} and {6, 8, 10}: means 2 and 8, grand mean 5.6.
  // Between: (2·3.6² + 3·2.4²)/1 = 43.2; within: (1+1 + 4+0+4)/(5-2) = 10/3. F = 12.96.
  const at::Tensor x = at::tensor({1.0F, 3.0F, 6.0F, 8.0F, 10.0F}).unsqueeze(1);
  const at::Tensor y = at::tensor({0, 0, 1, 1, 1}, at::kLong);
  EXPECT_NEAR(dimension_scores(x, y, 2, 0.0).item<double>(), 12.96, 1e-9);
  EXPECT_NEAR(dimension_scores(x, y, 7, 0.0).item<double>(), 12.96, 1e-9) << "classes that nobody holds do not count";
  EXPECT_NEAR(dimension_scores(x, y, 2, 1.0).item<double>(), 43.2 / (10.0 / 3 + 1), 1e-9);
}

TEST(DimensionScore, OneClassOrOneRecordEachIsNoTrouble) {
  const at::Tensor x = at::tensor({1.0F, 3.0F}).unsqueeze(1);
  EXPECT_EQ(dimension_scores(x, at::tensor({1, 1}, at::kLong), 3).item<double>(), 0);
  EXPECT_TRUE(std::isfinite(dimension_scores(x, at::tensor({0, 1}, at::kLong), 3).item<double>()));
  EXPECT_EQ(dimension_scores(at::empty({0, 4}), at::empty({0}, at::kLong), 3).sum().item<double>(), 0);
}

TEST(DimensionScore, BetweenClassVarianceGoesByClassMeans) {
  const at::Tensor p = at::tensor({0.0F, 1.0F, 2.0F, 1.0F, 4.0F, 1.0F}).view({3, 2});
  const at::Tensor v = between_class_variance(p, at::tensor({0, 0, 1}, at::kLong), 3);
  EXPECT_NEAR(v[0].item<double>(), 4.5, 1e-12) << "means 1 and 4";
  EXPECT_EQ(v[1].item<double>(), 0);
}

TEST(MutualInformation, OfTheClassItselfIsItsEntropyAndOfNoiseNearlyNothing) {
  const int64_t n = 4000;
  const at::Tensor y = at::arange(n).remainder(4);
  at::manual_seed(1);
  const at::Tensor x = at::stack({y.to(at::kFloat) + 0.01 * at::rand({n}), at::randn({n})}, 1);
  const at::Tensor information = mutual_information(x, y, 4, 8);
  EXPECT_NEAR(information[0].item<double>(), std::log(4.0), 1e-6);
  EXPECT_LT(information[1].item<double>(), 0.01);
}

TEST(RankCorrelation, KnownValues) {
  const at::Tensor a = at::tensor({1.0, 2.0, 3.0, 4.0, 5.0}, at::kDouble);
  EXPECT_NEAR(rank_correlation(a, a.exp()), 1, 1e-12);
  EXPECT_NEAR(rank_correlation(a, -a), -1, 1e-12);
  // Ranks 1 2 3 4 5 and 2 1 4 3 5: 1 - 6·4/(5·24) = 0.8.
  EXPECT_NEAR(rank_correlation(a, at::tensor({2.0, 1.0, 4.0, 3.0, 5.0}, at::kDouble)), 0.8, 1e-12);
}

TEST(Largest, AreAscendingIndices) {
  EXPECT_TRUE(largest(at::tensor({5.0, 1.0, 9.0, 7.0}, at::kDouble), 2).equal(at::tensor({2, 3}, at::kLong)));
}

}  // namespace
}  // namespace sotto::methods
