#include "methods/prompts/prompt_math.h"

#include "base/random.h"

#include <ATen/ATen.h>

#include <gtest/gtest.h>

namespace sotto::methods {
namespace {

at::Tensor random(at::IntArrayRef shape, uint64_t seed) {
  RandomStream stream(seed, "prompt-math");
  return at::empty(shape, at::kDouble).normal_(0.0, 1.0, stream.torch_generator());
}

bool close(const at::Tensor& a, const at::Tensor& b, double tolerance = 1e-10) {
  return (a - b).abs().max().item<double>() <= tolerance;
}

// b × w of the given singular values.
at::Tensor with_spectrum(int64_t b, int64_t w, const std::vector<double>& values) {
  const auto u = std::get<0>(at::linalg_qr(random({b, b}, 1)));
  const auto v = std::get<0>(at::linalg_qr(random({w, b}, 2)));
  return at::matmul(u * at::tensor(values, at::kDouble), v.t());
}

at::Tensor best_approximation(const at::Tensor& p, int64_t k) {
  const auto [u, s, v] = at::linalg_svd(p, false);
  return at::matmul(u.narrow(1, 0, k) * s.narrow(0, 0, k), v.narrow(0, 0, k));
}

TEST(Factorise, FactorsAreOrthonormalAndTheResidualMakesTheSumExact) {
  const at::Tensor p = random({16, 40}, 3);
  for (const int64_t k : {1, 2, 8, 16}) {
    const auto [u, v] = factorise(p, random({40, k}, 4));
    EXPECT_TRUE(close(at::matmul(u.t(), u), at::eye(k, at::kDouble)));
    EXPECT_TRUE(close(at::matmul(v, v.t()), at::eye(k, at::kDouble)));
    const at::Tensor residual = p - at::matmul(u, v);
    EXPECT_TRUE(close(at::matmul(u, v) + residual, p, 1e-12));
  }
}

TEST(Factorise, OnePowerIterationFindsSeparatedSpectra) {
  std::vector<double> spectrum = {100, 90, 80, 70};
  for (int i = 0; i < 12; ++i) spectrum.push_back(1e-9);
  const at::Tensor p = with_spectrum(16, 40, spectrum);
  const Factors factors = factorise(p, random({40, 4}, 5));
  EXPECT_TRUE(close(low_rank_part(p, factors), best_approximation(p, 4), 1e-6));
  // Of a spectrum without a gap it does not: then the residual matters.
  const at::Tensor flat = with_spectrum(16, 40, std::vector<double>(16, 1.0));
  EXPECT_FALSE(close(low_rank_part(flat, factorise(flat, random({40, 4}, 5))), flat, 0.1));
}

TEST(Factorise, ZeroPromptsAndFullRankAreFine) {
  const auto [u, v] = factorise(at::zeros({4, 9}, at::kDouble), random({9, 2}, 6));
  EXPECT_TRUE(at::isfinite(u).all().item<bool>() && at::isfinite(v).all().item<bool>());
  const at::Tensor p = random({4, 9}, 7);
  EXPECT_TRUE(close(low_rank_part(p, factorise(p, random({9, 4}, 8))), p));
}

TEST(RebuildGradient, IsTheTangentProjection) {
  const at::Tensor p = random({8, 20}, 9), g = random({8, 20}, 10);
  const auto eye = [](int64_t n) { return at::eye(n, at::kDouble); };
  for (const int64_t k : {1, 3, 8}) {
    const Factors factors = factorise(p, random({20, k}, 11));
    const auto& [u, v] = factors;
    const at::Tensor rebuilt = rebuild_gradient(at::matmul(g, v.t()), at::matmul(u.t(), g), factors);
    const at::Tensor expected =
        g - at::matmul(at::matmul(eye(8) - at::matmul(u, u.t()), g), eye(20) - at::matmul(v.t(), v));
    EXPECT_TRUE(close(rebuilt, expected)) << k;
    EXPECT_EQ(close(rebuilt, g), k == 8);
  }
}

TEST(Transport, KeepsItsMarginals) {
  const at::Tensor cost = 1 - random({3, 5, 2, 7}, 12).tanh();
  const TransportOptions options{.entropy = 0.1, .mass = 0.6, .iterations = 1000, .threshold = 1e-9};
  const at::Tensor plan = transport_plans(cost, options);
  EXPECT_TRUE(plan.ge(0).all().item<bool>());
  EXPECT_TRUE(close(plan.sum(3), at::full({3, 5, 2}, 0.3, at::kDouble), 1e-6));
  EXPECT_LE(plan.sum(2).max().item<double>(), 1.0 / 7 + 1e-6);
}

TEST(Transport, ApproachesTheCheapestPlan) {
  // One prompt, mass for two of four patches: with little entropy it takes the cheapest two.
  const at::Tensor cost = at::tensor({0.9, 0.1, 0.2, 0.8}, at::kDouble).view({1, 1, 1, 4});
  const TransportOptions options{.entropy = 0.01, .mass = 0.5, .iterations = 10000, .threshold = 1e-12};
  const at::Tensor plan = transport_plans(cost, options)[0][0][0];
  EXPECT_TRUE(close(plan, at::tensor({0.0, 0.25, 0.25, 0.0}, at::kDouble), 1e-4));
}

TEST(Transport, ARecordsPlanIsItsOwn) {
  const at::Tensor cost = 1 - random({6, 4, 2, 5}, 13).tanh();
  const at::Tensor all = transport_plans(cost, {});
  for (int64_t i = 0; i < 6; ++i) {
    EXPECT_TRUE(transport_plans(cost.narrow(0, i, 1), {})[0].equal(all[i])) << "record " << i;
  }
}

TEST(PromptLogits, OnePromptIsCosines) {
  at::Tensor text = random({1, 4, 6}, 14), images = random({3, 5, 6}, 15);
  text = text / text.norm(2, -1, true);
  images = images / images.norm(2, -1, true);
  const at::Tensor logits = prompt_logits(text, images, 0.5, {});
  for (int64_t i = 0; i < 3; ++i)
    for (int64_t c = 0; c < 4; ++c)
      EXPECT_NEAR(logits[i][c].item<double>(), (images[i][0] * text[0][c]).sum().item<double>() / 0.5, 1e-12);
}

TEST(ContrastLoss, PullsTheGlobalPromptToItsStart) {
  const at::Tensor start = at::tensor({1.0, 0.0}).view({1, 2}), personal = at::tensor({0.0, 1.0}).view({1, 2});
  const double near = contrast_loss(start, start, personal, 0.5).item<double>();
  const double far = contrast_loss(personal, start, personal, 0.5).item<double>();
  EXPECT_NEAR(near, std::log1p(std::exp(-2.0)), 1e-6);
  EXPECT_NEAR(far, std::log1p(std::exp(2.0)), 1e-6);
}

}  // namespace
}  // namespace sotto::methods
