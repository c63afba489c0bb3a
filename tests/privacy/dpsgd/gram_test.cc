#include "privacy/dpsgd/gram.h"

#include "privacy/dpsgd/chunk.h"
#include "privacy/dpsgd/conv_term.h"
#include "privacy/dpsgd/term_of_layer.h"

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

// How far a term's clipped sum is from the exact one, in units of the bound; `exact` is [examples, …] in doubles.
double error_of_sum(LayerTerm& term, const Parameter& weight, const Use& use, const at::Tensor& exact) {
  const int64_t examples = use.gradient.size(0);
  Chunk chunk(examples, 1);
  term.measure({use}, chunk);
  const double bound = 1.0;
  chunk.clip({&bound, 1}, false, examples);
  term.add_weighted(chunk);
  const at::Tensor factors = chunk.factors(0).to(at::kDouble);
  const at::Tensor clipped = exact.flatten(1) * factors.unsqueeze(1);
  EXPECT_LE(clipped.norm(2, 1).max().item<double>(), 1.0);
  return (weight.gradient.flatten() - clipped.sum(0)).norm().item<double>();
}

constexpr double kAllowed = 0x1p-13;  // a quarter of what is charged for a sum's rounding, for one of two passes

// g at odd positions undoes what it says at even ones, but for a hundred-thousandth.
at::Tensor cancelling(at::IntArrayRef shape, int64_t positions_at) {
  const at::Tensor g = at::randn(shape, generator()) * 1e4;  // so that what is left is clipped
  for (int64_t t = 0; t + 1 < shape[static_cast<size_t>(positions_at)]; t += 2)
    g.select(positions_at, t + 1).copy_(-g.select(positions_at, t) * (1 + 1e-5));
  return g;
}

TEST(Sums, OfPositionsThatCancelAreWithinWhatIsCharged) {
  const int64_t examples = 64, length = 8, in = 96, out = 96;
  const Parameter weight{at::zeros({out, in}), at::zeros({out, in})};
  at::Tensor a = at::randn({examples, length, in}, generator());
  for (int64_t t = 0; t < length; t += 2) a.select(1, t + 1).copy_(a.select(1, t));
  const at::Tensor g = cancelling({examples, length, out}, 1);
  const auto term = linear_term(&weight, nullptr);
  EXPECT_LE(error_of_sum(*term, weight, {a, g}, at::bmm(g.to(at::kDouble).transpose(1, 2), a.to(at::kDouble))),
            kAllowed);
}

TEST(Sums, OfPixelsThatCancelAreWithinWhatIsCharged) {
  const int64_t examples = 64, channels = 96;
  const Parameter weight{at::zeros({channels, channels, 1, 1}), at::zeros({channels, channels, 1, 1})};
  at::Tensor x = at::randn({examples, channels, 1, 4}, generator());
  for (int64_t t = 0; t < 4; t += 2) x.select(3, t + 1).copy_(x.select(3, t));
  const at::Tensor g = cancelling({examples, channels, 1, 4}, 3);
  ConvTerm term({.in = channels, .out = channels, .kernel = 1, .padding = 0}, &weight, nullptr);
  ASSERT_EQ(term.kept_per_example(x, g), channels * 4);  // the Gram form
  const at::Tensor exact = at::bmm(g.to(at::kDouble).flatten(2), x.to(at::kDouble).flatten(2).transpose(1, 2));
  EXPECT_LE(error_of_sum(term, weight, {x, g}, exact), kAllowed);
}

TEST(Sums, OfEqualWordsThatCancelAreWithinWhatIsCharged) {
  const int64_t examples = 64, length = 8, words = 5, width = 32;
  const Parameter weight{at::zeros({words, width}), at::zeros({words, width})};
  const at::Tensor ids = at::arange(examples * length).div(2, "floor").remainder(words).reshape({examples, length});
  const at::Tensor g = cancelling({examples, length, width}, 1);
  const auto term = embedding_term(weight);
  const at::Tensor exact = at::zeros({examples, words, width}, at::kDouble);
  for (int64_t i = 0; i < examples; ++i) exact[i].index_add_(0, ids[i], g[i].to(at::kDouble));
  EXPECT_LE(error_of_sum(*term, weight, {ids, g}, exact), kAllowed);
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
