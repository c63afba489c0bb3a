// Known answers of what attacks are measured by.
#include "attacks/parts/measures.h"

#include "base/random.h"

#include <ATen/ATen.h>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cmath>

namespace sotto::attacks {
namespace {

// Members 3, 2, 1 against 2, 0: of six pairs four are won, one is a tie.
const Scores kByHand{{3, 2, 1}, {2, 0}};

TEST(Roc, ByHand) {
  EXPECT_DOUBLE_EQ(auc(kByHand), 4.5 / 6);
  const auto points = roc(kByHand);
  ASSERT_EQ(points.size(), 5U);  // (0,0), after 3, after 2, after 1, after 0
  EXPECT_DOUBLE_EQ(points[1].true_positive_rate, 1.0 / 3);
  EXPECT_DOUBLE_EQ(points[2].true_positive_rate, 2.0 / 3);
  EXPECT_DOUBLE_EQ(points[2].false_positive_rate, 0.5) << "a tie moves both rates at once";
  EXPECT_DOUBLE_EQ(advantage(kByHand), 0.5);
  EXPECT_DOUBLE_EQ(best_f1(kByHand), 2.0 * 3 / (4 + 3));
  EXPECT_DOUBLE_EQ(true_positives_at(kByHand, 0.4), 1.0 / 3);
  EXPECT_DOUBLE_EQ(true_positives_at(kByHand, 0.5), 1.0);
}

TEST(Roc, NothingToGoBy) {
  const Scores same{{1, 1, 1}, {1, 1}};
  EXPECT_DOUBLE_EQ(auc(same), 0.5);
  EXPECT_DOUBLE_EQ(advantage(same), 0);
  EXPECT_DOUBLE_EQ(true_positives_at(same, 0.01), 0);
  const Scores wrong{{0}, {1}};
  EXPECT_DOUBLE_EQ(auc(wrong), 0);
}

TEST(Roc, CurvesAreWrittenWithLimitsAndFromEndToEnd) {
  Scores scores;
  RandomStream stream(1, "roc");
  for (int i = 0; i < 3000; ++i) {
    scores.members.push_back(stream.normal() + 1);
    scores.others.push_back(stream.normal());
  }
  const nlohmann::json described = describe(scores);
  EXPECT_NEAR(described["auc"].get<double>(), 0.7602, 0.02) << "Φ(1/√2)";
  const auto& curve = described["roc"];
  EXPECT_LE(curve["low"].size(), 410U);
  EXPECT_EQ(curve["false_positive_rate"].size(), curve["true_positive_rate"].size());
  EXPECT_EQ(curve["true_positive_rate"].front(), 0.0);
  EXPECT_EQ(curve["true_positive_rate"].back(), 1.0);
  for (size_t i = 0; i < curve["low"].size(); ++i) {
    EXPECT_LE(curve["low"][i].get<double>(), curve["true_positive_rate"][i].get<double>() + 1e-12);
    EXPECT_GE(curve["high"][i].get<double>(), curve["true_positive_rate"][i].get<double>() - 1e-12);
  }
}

// Points with exactly these moments: ±√((n-1)/2)·s in each axis.
at::Tensor cross(double mean, const std::vector<double>& stddevs) {
  const auto d = static_cast<int64_t>(stddevs.size());
  at::Tensor points = at::full({2 * d, d}, mean, at::kDouble);
  for (int64_t i = 0; i < d; ++i) {
    const double reach = stddevs[static_cast<size_t>(i)] * std::sqrt((2.0 * static_cast<double>(d) - 1) / 2);
    points[2 * i][i] += reach;
    points[2 * i + 1][i] -= reach;
  }
  return points;
}

TEST(Frechet, KnownGaussians) {
  // Diagonal covariances: Σ (m₁ - m₂)² + (s₁ - s₂)².
  EXPECT_NEAR(frechet_distance(cross(0, {1, 2, 3}), cross(2, {1, 2, 3})), 12, 1e-9);
  EXPECT_NEAR(frechet_distance(cross(0, {1, 2, 3}), cross(0, {2, 2, 5})), 1 + 4, 1e-9);
  EXPECT_NEAR(frechet_distance(cross(1, {1, 1}), cross(1, {1, 1})), 0, 1e-9);
  // Turned together they stay as far apart.
  const double c = std::cos(0.7), s = std::sin(0.7);
  const at::Tensor turn = at::tensor({c, -s, s, c}, at::kDouble).reshape({2, 2});
  const at::Tensor a = cross(0, {1, 4}), b = cross(1, {3, 2});
  EXPECT_NEAR(frechet_distance(at::mm(a, turn), at::mm(b, turn)), 2 + 4 + 4, 1e-9);
  // Fewer points than dimensions: the covariance is singular.
  EXPECT_TRUE(std::isfinite(frechet_distance(at::randn({3, 10}), at::randn({3, 10}))));
}

TEST(Pictures, KnownRatios) {
  const at::Tensor black = -at::ones({1, 8, 8}), grey = at::zeros({1, 8, 8});
  EXPECT_NEAR(psnr(black, grey), 10 * std::log10(4.0), 1e-9);
  EXPECT_TRUE(std::isinf(psnr(grey, grey)));
  const at::Tensor picture = at::linspace(-1, 1, 64).reshape({1, 8, 8});
  EXPECT_NEAR(ssim(picture, picture), 1, 1e-9);
  const at::Tensor board =
      ((at::arange(36) + at::arange(36).div(6, "floor")).remainder(2) * 2 - 1).to(at::kFloat).reshape({1, 6, 6});
  EXPECT_NEAR(ssim(board, -board), (0.0036 - 2) / (0.0036 + 2), 1e-6) << "means of zero, covariance of -1";
  EXPECT_NEAR(ssim(black, grey), 0.0004 / 1.0004, 1e-6) << "constant pictures: (2μν + c₁)/(μ² + ν² + c₁)";
  EXPECT_TRUE(to_bytes(at::tensor({-1.0f, 0.0f, 1.0f, 2.0f})).equal(at::tensor({0, 128, 255, 255}, at::kByte)));
}

}  // namespace
}  // namespace sotto::attacks
