#include "compare.h"
#include "models/ops/ops.h"

#include <string>

namespace sotto::models::ops {
namespace {

struct Case {
  int64_t samples, channels, size, filters, kernel, stride, padding, pool_kernel, pool_stride;
};

std::string name_of(const testing::TestParamInfo<Case>& info) {
  const Case& c = info.param;
  return fmt::format("n{}c{}x{}o{}k{}s{}p{}pool{}by{}", c.samples, c.channels, c.size, c.filters, c.kernel, c.stride,
                     c.padding, c.pool_kernel, c.pool_stride);
}

Inputs make_inputs(const Case& c, at::ScalarType type = at::kFloat) {
  return {random_tensor({c.samples, c.channels, c.size, c.size}, 1, type),
          random_tensor({c.filters, c.channels, c.kernel, c.kernel}, 2, type), random_tensor({c.filters}, 3, type)};
}

Operator fast(const Case& c) {
  return [c](const Inputs& x) {
    return conv2d_relu_max_pool2d(x[0], x[1], x[2], c.stride, c.padding, c.pool_kernel, c.pool_stride);
  };
}

Operator reference(const Case& c) {
  return [c](const Inputs& x) {
    const at::Tensor convolved = at::conv2d(x[0], x[1], x[2], {c.stride, c.stride}, {c.padding, c.padding});
    return at::max_pool2d(at::relu(convolved), {c.pool_kernel, c.pool_kernel}, {c.pool_stride, c.pool_stride});
  };
}

class BlockTest : public testing::TestWithParam<Case> {};

TEST_P(BlockTest, EqualsLibtorch) {
  expect_same(make_inputs(GetParam()), fast(GetParam()), reference(GetParam()));
}

// Small whole numbers: products and sums are exact, so that ties and zeros are the same in both.
TEST_P(BlockTest, EqualsLibtorchOnTiesAndZeros) {
  Inputs inputs = make_inputs(GetParam());
  for (at::Tensor& input : inputs) input.round_().clamp_(-1, 1);
  expect_same(inputs, fast(GetParam()), reference(GetParam()));
}

INSTANTIATE_TEST_SUITE_P(Shapes, BlockTest,
                         testing::Values(Case{32, 1, 28, 16, 8, 2, 3, 2, 1}, Case{32, 16, 13, 32, 4, 2, 0, 2, 1},
                                         Case{1, 1, 28, 16, 8, 2, 3, 2, 1}, Case{2, 3, 32, 6, 5, 1, 0, 2, 2},
                                         Case{3, 3, 11, 21, 3, 1, 1, 3, 2}, Case{70, 2, 8, 3, 3, 1, 1, 2, 2},
                                         Case{1, 2, 40, 3, 3, 1, 0, 17, 5}, Case{3, 40, 7, 50, 3, 1, 1, 2, 2},
                                         Case{2, 256, 6, 256, 3, 1, 1, 2, 2}),
                         name_of);

const Case kSmall = {2, 2, 6, 3, 3, 1, 1, 2, 1};

TEST(Block, HasTrueGradientsInDouble) {
  expect_true_gradients(make_inputs(kSmall, at::kDouble), fast(kSmall));
}

TEST(Block, CanBeDifferentiatedTwice) {
  expect_same_second_gradients(make_inputs(kSmall), fast(kSmall), reference(kSmall));
}

TEST(Block, LetsNaNThroughAsLibtorchDoes) {
  Inputs inputs = make_inputs(kSmall);
  inputs[0][0][1][3][3] = NAN;
  expect_same(inputs, fast(kSmall), reference(kSmall));
}

TEST(Block, WorksWithoutBiasAndWithoutGradients) {
  const at::NoGradGuard no_grad;
  Inputs inputs = make_inputs(kSmall);
  inputs[2] = at::Tensor();
  expect_close(fast(kSmall)(inputs), reference(kSmall)(inputs), "output");
}

TEST(Block, RefusesWindowsThatDoNotFit) {
  const Inputs x = make_inputs(kSmall);
  EXPECT_THROW(conv2d_relu_max_pool2d(x[0], x[1], x[2], 1, 1, 7, 1), c10::Error);
}

}  // namespace
}  // namespace sotto::models::ops
