#include "privacy/dpsgd/gram.h"

#include "privacy/dpsgd/chunk.h"

#include <ATen/ATen.h>

#include <gtest/gtest.h>

#include <cmath>

namespace sotto::privacy {
namespace {

at::Generator generator() {
  at::Generator made = at::detail::createCPUGenerator(11);
  return made;
}

TEST(Gram, EqualsTheNormOfTheSum) {
  const at::Tensor a = at::randn({3, 5, 7}, generator()), g = at::randn({3, 5, 4}, generator());
  const auto squares = gram_squares(a, g);
  const at::Tensor sums = at::bmm(g.to(at::kDouble).transpose(1, 2), a.to(at::kDouble));
  for (int64_t i = 0; i < 3; ++i)
    EXPECT_NEAR(squares[static_cast<size_t>(i)], sums[i].pow(2).sum().item<double>(), 1e-10);
}

TEST(Gram, IsNeverBelowTheNormEvenWherePositionsCancel) {
  at::Tensor a = at::randn({1, 2, 64}, generator()), g = at::randn({1, 2, 64}, generator());
  a.select(1, 1).copy_(a.select(1, 0));
  g.select(1, 1).copy_(-g.select(1, 0) * (1 + 1e-5));
  const at::Tensor sum = at::bmm(g.to(at::kDouble).transpose(1, 2), a.to(at::kDouble));
  const double exact = sum.pow(2).sum().item<double>();
  EXPECT_GE(gram_squares(a, g)[0], exact);
  EXPECT_NEAR(gram_squares(a, g)[0] / exact, 1.0, 0.01);
}

TEST(Gram, ConvolutionsNeedNoPatches) {
  for (const int64_t kernel : {1, 2, 3, 5})
    for (const int64_t stride : {1, 2, 3})
      for (const int64_t padding : {0, 1, 2}) {
        if (padding > kernel) continue;
        const at::Tensor x = at::randn({2, 3, 6, 5}, generator()).to(at::kDouble);
        const at::Tensor w = at::zeros({4, 3, kernel, kernel}, at::kDouble).set_requires_grad(true);
        const at::Tensor y = at::conv2d(x, w, {}, {stride, stride}, {padding, padding});
        const at::Tensor g = at::randn(y.sizes(), generator()).to(at::kDouble);
        const auto squares = conv_gram_squares(x.to(at::kFloat), g.to(at::kFloat), {kernel, stride, padding});
        for (int64_t i = 0; i < 2; ++i) {
          w.mutable_grad() = at::Tensor();
          y[i].backward(g[i], true);
          const double expected = w.grad().pow(2).sum().item<double>();
          EXPECT_NEAR(squares[static_cast<size_t>(i)] / expected, 1.0, 1e-5) << kernel << stride << padding;
        }
      }
}

TEST(ClipFactor, RoundsTowardsZeroAndNeverExceedsTheBound) {
  EXPECT_EQ(clip_factor(0.0, 1.0), 1.0f);
  EXPECT_EQ(clip_factor(0.99, 1.0), 1.0f);
  for (int i = 0; i < 1000; ++i) {
    const double norm = 1.0 + 0.013 * i, bound = 1.0 - 0.0007 * i;
    const double factor = clip_factor(norm * norm, bound);
    EXPECT_LT(factor * norm, bound * (1 - 0.9e-6));
    EXPECT_GT(factor * norm, bound * (1 - 1.3e-6));
  }
}

TEST(Chunk, AnExampleThatIsNotFiniteAnywhereIsLeftOutEverywhere) {
  Chunk chunk(3, 2);
  chunk.squares(0)[1] = std::nan("");
  chunk.squares(1)[2] = 100.0;
  const double bounds[] = {1.0, 1.0};
  chunk.clip(bounds, false, chunk.examples());
  EXPECT_EQ(chunk.non_finite(), std::vector<int64_t>{1});
  EXPECT_EQ(chunk.clipped(), 1);
  EXPECT_EQ(chunk.factors(1)[1].item<float>(), 0.0f);
  EXPECT_EQ(chunk.factors(0)[2].item<float>(), 1.0f);
  EXPECT_NEAR(chunk.factors(1)[2].item<float>(), 0.1f, 1e-6);
}

}  // namespace
}  // namespace sotto::privacy
