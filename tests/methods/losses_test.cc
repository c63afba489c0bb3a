#include "methods/prototypes/losses.h"

#include <ATen/ATen.h>

#include <gtest/gtest.h>

#include <cmath>

namespace sotto::methods {
namespace {

at::Tensor matrix(const std::vector<float>& values, int64_t columns) {
  return at::tensor(values).view({-1, columns});
}

at::Tensor labels(const std::vector<int64_t>& values) {
  return at::tensor(values, at::kLong);
}

const PrototypeSet kTwo{matrix({1, 0, 0, 2}, 2), labels({0, 3}), at::ones({2})};

TEST(Losses, DistanceToOwnLeavesOutClassesWithoutPrototype) {
  // Record 0: ((2-1)² + 0)/2 = 0.5; record 1: class 1 has none; record 2: (1 + 1)/2 = 1.
  const at::Tensor z = matrix({2, 0, 9, 9, 1, 1}, 2);
  EXPECT_NEAR(distance_to_own(z, labels({0, 1, 3}), kTwo).item<double>(), 0.75, 1e-6);
  EXPECT_EQ(distance_to_own(z, labels({1, 1, 2}), kTwo).item<double>(), 0);
  EXPECT_EQ(distance_to_own(z, labels({0, 1, 3}), {}).item<double>(), 0);
}

TEST(Losses, ContrastIsTheLogShareOfTheOwnClass) {
  const at::Tensor s = matrix({1, 0.5F, 0}, 3);
  const double e1 = std::exp(2.0), e2 = std::exp(1.0), e3 = 1.0;
  EXPECT_NEAR(contrast(s, labels({7}), labels({7, 1, 7}), 0.5).item<double>(), -std::log((e1 + e3) / (e1 + e2 + e3)),
              1e-6);
  EXPECT_EQ(contrast(s, labels({5}), labels({7, 1, 7}), 0.5).item<double>(), 0) << "no prototype of class 5";
}

TEST(Losses, ContrastHasAFiniteGradientWithoutPositives) {
  at::Tensor z = matrix({1, 2, 3, 4}, 2).requires_grad_();
  contrast(cosine(z, kTwo.values), labels({0, 1}), kTwo.classes, 0.07).backward();
  EXPECT_TRUE(at::isfinite(z.grad()).all().item<bool>());
  EXPECT_EQ(z.grad()[1].abs().sum().item<double>(), 0);
}

TEST(Losses, CosineAndItsSparseForm) {
  const at::Tensor z = matrix({3, 4}, 2);
  EXPECT_NEAR(cosine(z, kTwo.values)[0][0].item<double>(), 0.6, 1e-6);
  EXPECT_NEAR(sparse_cosine(z, -kTwo.values, 0.25)[0][1].item<double>(), -std::pow(0.8, 0.25), 1e-6);
  at::Tensor zero = matrix({0, 1}, 2).requires_grad_();
  sparse_cosine(zero, kTwo.values, 0.25).sum().backward();
  EXPECT_TRUE(at::isfinite(zero.grad()).all().item<bool>());
}

TEST(Losses, CorrectionIsTheMeanGapToTheOwnClass) {
  const at::Tensor s = matrix({0.5F, 0.25F, 1}, 3);
  EXPECT_NEAR(correction(s, labels({2}), labels({2, 2, 0})).item<double>(), (0.5 + 0.75) / 2, 1e-6);
}

TEST(Losses, DistillationIsTheDivergenceAtATemperature) {
  // At τ = 2 the teacher is (4, 1)/5 and the student (1, 1)/2.
  const at::Tensor teacher = matrix({2 * std::log(4.0F), 0}, 2), student = matrix({1, 1}, 2);
  EXPECT_NEAR(distillation(teacher, student, 2).item<double>(), 0.8 * std::log(1.6) + 0.2 * std::log(0.4), 1e-6);
  at::Tensor t = teacher.clone().requires_grad_(), s = student.clone().requires_grad_();
  distillation(t, s, 2).backward();
  EXPECT_FALSE(t.grad().defined()) << "the teacher is not taught";
  EXPECT_TRUE(s.grad().defined());
}

TEST(Losses, SoftClipByHand) {
  // ‖z‖ = 5, R = 10, γ = 0.05: factor 10/5.5.
  EXPECT_TRUE(at::allclose(soft_clip(matrix({3, 4}, 2), 10, 0.05), matrix({3, 4}, 2) * (10 / 5.5)));
  EXPECT_LT(soft_clip(matrix({3000, 4000}, 2), 10, 0.05).norm().item<double>(), 10);
  EXPECT_EQ(soft_clip(at::zeros({1, 2}), 10, 0.05).abs().sum().item<double>(), 0);
}

}  // namespace
}  // namespace sotto::methods
