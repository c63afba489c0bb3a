#include "federation/scores.h"

#include <ATen/ATen.h>

#include <gtest/gtest.h>

#include <cmath>

namespace sotto::federation {
namespace {

Predictions predictions(std::vector<int64_t> predicted, std::vector<int64_t> truth, std::vector<double> score = {}) {
  return {at::tensor(predicted, at::kLong), score.empty() ? at::Tensor() : at::tensor(score),
          at::tensor(truth, at::kLong)};
}

TEST(Scores, AccuracyAndBalancedAccuracy) {
  const auto p = predictions({0, 0, 0, 0, 1}, {0, 0, 0, 1, 1});
  EXPECT_DOUBLE_EQ(accuracy(p), 0.8);
  EXPECT_DOUBLE_EQ(balanced_accuracy(p), (1.0 + 0.5) / 2);
}

TEST(Scores, NothingToScoreIsUndefined) {
  const auto p = predictions({}, {});
  EXPECT_TRUE(std::isnan(accuracy(p)));
  EXPECT_TRUE(std::isnan(balanced_accuracy(p)));
  EXPECT_TRUE(std::isnan(spread({}).mean));
  EXPECT_TRUE(std::isnan(auroc(predictions({0, 0}, {0, 0}, {0.1, 0.2})))) << "one class only";
  const double nan = std::nan("");
  EXPECT_TRUE(std::isnan(auroc(predictions({0, 1, 1}, {0, 1, 1}, {nan, 0.2, nan})))) << "scores without an order";
}

TEST(Scores, AurocIsTheProbabilityOfTheRightOrder) {
  EXPECT_DOUBLE_EQ(auroc(predictions({0, 0, 1, 1}, {0, 0, 1, 1}, {0.1, 0.2, 0.3, 0.4})), 1.0);
  EXPECT_DOUBLE_EQ(auroc(predictions({0, 0, 1, 1}, {1, 1, 0, 0}, {0.1, 0.2, 0.3, 0.4})), 0.0);
  EXPECT_DOUBLE_EQ(auroc(predictions({0, 0, 0, 0}, {0, 1, 0, 1}, {0.5, 0.5, 0.5, 0.5})), 0.5) << "ties count half";
  EXPECT_DOUBLE_EQ(auroc(predictions({0, 0, 0}, {0, 1, 0}, {0.1, 0.2, 0.3})), 0.5);
}

TEST(Scores, SpreadSkipsUndefinedValues) {
  const Spread s = spread({1.0, std::nan(""), 3.0});
  EXPECT_DOUBLE_EQ(s.mean, 2.0);
  EXPECT_DOUBLE_EQ(s.std, 1.0);
  EXPECT_DOUBLE_EQ(s.worst, 1.0);
}

}  // namespace
}  // namespace sotto::federation
