#include "compare.h"
#include "models/ops/ops.h"

#include <ATen/Parallel.h>

#include <string>
#include <thread>

namespace sotto::models::ops {
namespace {

struct Case {
  int64_t samples, channels, height, width, filters, kernel, stride, padding;
};

std::string name_of(const testing::TestParamInfo<Case>& info) {
  const Case& c = info.param;
  return fmt::format("n{}c{}h{}w{}o{}k{}s{}p{}", c.samples, c.channels, c.height, c.width, c.filters, c.kernel,
                     c.stride, c.padding);
}

Inputs make_inputs(const Case& c, at::ScalarType type = at::kFloat) {
  return {random_tensor({c.samples, c.channels, c.height, c.width}, 1, type),
          random_tensor({c.filters, c.channels, c.kernel, c.kernel}, 2, type), random_tensor({c.filters}, 3, type)};
}

Operator fast(const Case& c) {
  return [c](const Inputs& x) { return conv2d(x[0], x[1], x.size() > 2 ? x[2] : at::Tensor(), c.stride, c.padding); };
}

Operator reference(const Case& c) {
  return [c](const Inputs& x) {
    return at::conv2d(x[0], x[1], x.size() > 2 ? x[2] : at::Tensor(), {c.stride, c.stride}, {c.padding, c.padding});
  };
}

class Conv2dTest : public testing::TestWithParam<Case> {};

TEST_P(Conv2dTest, EqualsLibtorch) {
  expect_same(make_inputs(GetParam()), fast(GetParam()), reference(GetParam()));
}

TEST_P(Conv2dTest, EqualsLibtorchWithoutBias) {
  Inputs inputs = make_inputs(GetParam());
  inputs.pop_back();
  expect_same(inputs, fast(GetParam()), reference(GetParam()));
}

INSTANTIATE_TEST_SUITE_P(Shapes, Conv2dTest,
                         testing::Values(Case{32, 1, 28, 28, 16, 8, 2, 3}, Case{32, 16, 13, 13, 32, 4, 2, 0},
                                         Case{1, 1, 28, 28, 16, 8, 2, 3}, Case{1, 1, 1, 1, 1, 1, 1, 0},
                                         Case{2, 3, 7, 9, 5, 3, 1, 1}, Case{3, 3, 32, 32, 6, 5, 1, 0},
                                         Case{2, 6, 14, 14, 17, 5, 1, 2}, Case{5, 2, 5, 11, 33, 2, 3, 0},
                                         Case{1, 64, 6, 6, 40, 3, 1, 1}, Case{2, 24, 3, 3, 48, 1, 1, 0},
                                         Case{3, 20, 6, 6, 25, 3, 1, 1}, Case{1, 2, 70, 70, 4, 3, 1, 1},
                                         Case{2, 4, 3, 4, 8, 3, 1, 2}, Case{70, 1, 9, 9, 10, 3, 2, 1},
                                         Case{1, 256, 5, 5, 256, 3, 1, 1}, Case{2, 3, 4, 4, 8, 2, 5, 0}),
                         name_of);

const Case kSmall = {3, 2, 6, 5, 3, 3, 2, 1};

TEST(Conv2d, TakesInputsOfAnyLayout) {
  const Operator strange = [&](const Inputs& x) {
    return fast(kSmall)({x[0].transpose(2, 3), x[1].transpose(0, 1).contiguous().transpose(0, 1), x[2]});
  };
  const Operator plain = [&](const Inputs& x) { return reference(kSmall)({x[0].transpose(2, 3), x[1], x[2]}); };
  expect_same(make_inputs(kSmall), strange, plain);
}

TEST(Conv2d, TakesGradientsOfAnyLayout) {
  expect_same(
      make_inputs(kSmall), [](const Inputs& x) { return fast(kSmall)(x).transpose(0, 3).flatten(1); },
      [](const Inputs& x) { return reference(kSmall)(x).transpose(0, 3).flatten(1); });
}

TEST(Conv2d, ComputesOnlyWantedGradients) {
  Inputs x = make_inputs(kSmall);
  x[1].requires_grad_(true);
  fast(kSmall)(x).sum().backward();
  EXPECT_FALSE(x[0].grad().defined());
  EXPECT_FALSE(x[2].grad().defined());
  Inputs all = leaves(make_inputs(kSmall));
  reference(kSmall)(all).sum().backward();
  expect_close(x[1].grad(), all[1].grad(), "weight gradient");
}

TEST(Conv2d, HasTrueGradientsInDouble) {
  expect_true_gradients(make_inputs(kSmall, at::kDouble), fast(kSmall));
}

TEST(Conv2d, CanBeDifferentiatedTwice) {
  expect_same_second_gradients(make_inputs(kSmall), fast(kSmall), reference(kSmall));
}

TEST(Conv2d, CanBeDifferentiatedTwiceWithOneWeightInTwoLayers) {
  const Case c = {2, 3, 5, 5, 3, 3, 1, 1};
  const auto twice = [&](const Operator& op) -> Operator {
    return [op](const Inputs& x) { return op({op(x).square(), x[1], x[2]}); };
  };
  expect_same_second_gradients(make_inputs(c), twice(fast(c)), twice(reference(c)));
}

TEST(Conv2d, PropagatesNaNToThePixelsThatSeeIt) {
  Inputs x = make_inputs(kSmall);
  x[0][1][0][2][2] = NAN;
  const at::Tensor got = fast(kSmall)(x), wanted = reference(kSmall)(x);
  EXPECT_TRUE(wanted.isnan().any().item<bool>());
  EXPECT_TRUE(at::equal(got.isnan(), wanted.isnan()));
}

TEST(Conv2d, NaNGradientStaysInItsPatch) {
  const Case c = {1, 3, 8, 8, 4, 3, 1, 0};
  Inputs mine = leaves(make_inputs(c)), theirs = leaves(make_inputs(c));
  at::Tensor gradient = at::ones({1, 4, 6, 6});
  gradient[0][2][3][3] = NAN;
  fast(c)(mine).backward(gradient);
  reference(c)(theirs).backward(gradient);
  for (size_t i = 0; i < mine.size(); ++i) EXPECT_TRUE(at::equal(mine[i].grad().isnan(), theirs[i].grad().isnan()));
}

TEST(Conv2d, RefusesWhatLibtorchRefuses) {
  const Inputs x = make_inputs(kSmall);
  EXPECT_THROW(conv2d(x[0], random_tensor({3, 4, 3, 3}, 1), x[2], 1, 0), c10::Error);
  EXPECT_THROW(conv2d(x[0], random_tensor({3, 2, 9, 9}, 1), x[2], 1, 0), c10::Error);
  EXPECT_THROW(conv2d(x[0], x[1], random_tensor({4}, 1), 1, 0), c10::Error);
  EXPECT_THROW(conv2d(x[0], x[1], x[2], 0, 0), c10::Error);
}

// Outputs and gradients of one pass.
Inputs pass(const Case& c) {
  Inputs x = leaves(make_inputs(c));
  const at::Tensor output = fast(c)(x);
  output.sum().backward();
  return {output.detach(), x[0].grad(), x[1].grad(), x[2].grad()};
}

void expect_identical(const Inputs& a, const Inputs& b) {
  for (size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(at::equal(a[i], b[i])) << i;
}

TEST(Conv2d, GivesTheSameBitsOnAnyNumberOfIntraOpThreads) {
  const Case c = {70, 3, 12, 12, 10, 3, 1, 1};
  const int before = at::get_num_threads();
  at::set_num_threads(1);
  const Inputs alone = pass(c);
  at::set_num_threads(3);
  const Inputs together = pass(c);
  at::set_num_threads(before);
  expect_identical(alone, together);
}

TEST(Conv2d, TwoThreadsDoNotDisturbEachOther) {
  const Case large = {32, 1, 28, 28, 16, 8, 2, 3}, small = {5, 16, 13, 13, 32, 4, 2, 1};
  const Inputs expected_large = pass(large), expected_small = pass(small);
  const auto work = [&](bool large_first) {
    at::set_num_threads(1);
    for (int i = 0; i < 40; ++i) {
      const bool is_large = (i % 2 == 0) == large_first;
      expect_identical(pass(is_large ? large : small), is_large ? expected_large : expected_small);
    }
  };
  std::thread first(work, true), second(work, false);
  first.join();
  second.join();
}

}  // namespace
}  // namespace sotto::models::ops
