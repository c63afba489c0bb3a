#include "base/statistics.h"

#include <gtest/gtest.h>

#include <cmath>

namespace sotto {
namespace {

TEST(Statistics, MeanAndSampleStd) {
  EXPECT_DOUBLE_EQ(mean({1, 2, 6}), 3.0);
  EXPECT_DOUBLE_EQ(sample_std({1, 2, 6}), std::sqrt(7.0));
  EXPECT_DOUBLE_EQ(sample_std({4}), 0.0);
}

TEST(Statistics, QuantilesLieBetweenNeighbours) {
  EXPECT_DOUBLE_EQ(quantile({4, 1, 3, 2, 5}, 0.25), 2.0);
  EXPECT_DOUBLE_EQ(quantile({2, 1}, 0.75), 1.75);
  EXPECT_DOUBLE_EQ(quantile({7}, 1.0), 7.0);
}

// Ranks as printed in tables of the sign test: 1 of 6, 2 of 10, 6 of 20, 40 of 100.
TEST(MedianInterval, LeavesOutWhatTheBinomialAllows) {
  for (const auto& [n, rank] : {std::pair{6, 1}, {10, 2}, {20, 6}, {100, 40}}) {
    std::vector<double> values;
    for (int i = n; i >= 1; --i) values.push_back(i);
    const Interval interval = median_interval(values, 0.95);
    EXPECT_EQ(interval.low, rank) << n;
    EXPECT_EQ(interval.high, n + 1 - rank) << n;
  }
}

TEST(MedianInterval, OfTooFewValuesIsTheirRange) {
  const Interval interval = median_interval({3, 1, 2}, 0.95);
  EXPECT_EQ(interval.low, 1);
  EXPECT_EQ(interval.high, 3);
  EXPECT_EQ(median_interval({5}, 0.95).low, 5);
}

// Completely separated samples: only the two extreme splits of C(n, k) are as far out.
TEST(MannWhitney, SeparatedSamplesGiveTheSmallestPossibleP) {
  EXPECT_NEAR(mann_whitney_p({1, 2, 3}, {4, 5, 6}), 2.0 / 20, 1e-12);
  EXPECT_NEAR(mann_whitney_p({1, 2, 3, 4, 5}, {6, 7, 8, 9, 10}), 2.0 / 252, 1e-12);
  EXPECT_NEAR(mann_whitney_p({6, 7, 8, 9, 10}, {1, 2, 3, 4, 5}), 2.0 / 252, 1e-12);
}

// {1,3,5} against {2,4}: rank sum 9 is the mean, so every split is at least as extreme.
TEST(MannWhitney, CentredSamplesGiveOne) {
  EXPECT_NEAR(mann_whitney_p({1, 3, 5}, {2, 4}), 1.0, 1e-12);
}

// {1,2} against {1,3}: mid-ranks 1.5 1.5 3 4, sum 4.5 against a mean of 5; all six splits are at least half a rank
// away.
TEST(MannWhitney, TiesAreExactToo) {
  EXPECT_NEAR(mann_whitney_p({1, 1}, {1, 1}), 1.0, 1e-12);
  EXPECT_NEAR(mann_whitney_p({1, 1}, {2, 3}), 2.0 / 6, 1e-12);
  EXPECT_NEAR(mann_whitney_p({1, 2}, {1, 3}), 1.0, 1e-12);
}

TEST(MannWhitney, LargeSamplesUseTheNormalApproximation) {
  std::vector<double> a, b;
  for (int i = 0; i < 40; ++i) {
    a.push_back(i);
    b.push_back(i + 0.5);
  }
  EXPECT_GT(mann_whitney_p(a, b), 0.8);
  for (double& value : b) value += 20;
  EXPECT_LT(mann_whitney_p(a, b), 1e-6);
}

TEST(MannWhitney, EmptySamplesAreUndefined) {
  EXPECT_TRUE(std::isnan(mann_whitney_p({}, {1})));
}

}  // namespace
}  // namespace sotto
