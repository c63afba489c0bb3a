#include "compare.h"
#include "models/ops/ops.h"

#include <string>

namespace sotto::models::ops {
namespace {

struct Case {
  int64_t samples, channels, height, width, kernel, stride;
};

std::string name_of(const testing::TestParamInfo<Case>& info) {
  const Case& c = info.param;
  return fmt::format("n{}c{}h{}w{}k{}s{}", c.samples, c.channels, c.height, c.width, c.kernel, c.stride);
}

at::Tensor make_images(const Case& c, at::ScalarType type = at::kFloat) {
  return random_tensor({c.samples, c.channels, c.height, c.width}, 1, type);
}

Operator fast(const Case& c) {
  return [c](const Inputs& x) { return max_pool2d(x[0], c.kernel, c.stride); };
}

Operator reference(const Case& c) {
  return [c](const Inputs& x) { return at::max_pool2d(x[0], {c.kernel, c.kernel}, {c.stride, c.stride}); };
}

class MaxPool2dTest : public testing::TestWithParam<Case> {};

TEST_P(MaxPool2dTest, EqualsLibtorch) {
  expect_same({make_images(GetParam())}, fast(GetParam()), reference(GetParam()));
}

TEST_P(MaxPool2dTest, GivesTiesToTheSamePixel) {
  const at::Tensor images = (make_images(GetParam()) * 1.5).round();
  expect_same({images}, fast(GetParam()), reference(GetParam()));
  expect_same({at::zeros_like(images)}, fast(GetParam()), reference(GetParam()));
}

TEST_P(MaxPool2dTest, LetsNaNWinTheSameWindows) {
  at::Tensor images = make_images(GetParam());
  images.masked_fill_(random_tensor(images.sizes(), 5) > 1, NAN);
  expect_same({images}, fast(GetParam()), reference(GetParam()));
}

TEST_P(MaxPool2dTest, EqualsLibtorchOnInfinities) {
  at::Tensor images = make_images(GetParam());
  images.masked_fill_(random_tensor(images.sizes(), 6) > 0, -INFINITY);
  expect_same({images}, fast(GetParam()), reference(GetParam()));
}

INSTANTIATE_TEST_SUITE_P(Shapes, MaxPool2dTest,
                         testing::Values(Case{32, 16, 14, 14, 2, 1}, Case{4, 32, 5, 5, 2, 1}, Case{2, 6, 28, 28, 2, 2},
                                         Case{3, 19, 7, 10, 3, 2}, Case{1, 4, 2, 2, 2, 1}, Case{1, 8, 9, 9, 4, 1},
                                         Case{2, 1, 6, 6, 2, 1}, Case{2, 5, 6, 7, 1, 3}, Case{1, 16, 16, 17, 16, 1},
                                         Case{2, 23, 15, 16, 15, 1}),
                         name_of);

const Case kSmall = {2, 5, 4, 5, 2, 1};

TEST(MaxPool2d, HasTrueGradientsInDouble) {
  expect_true_gradients({make_images(kSmall, at::kDouble)}, fast(kSmall));
}

TEST(MaxPool2d, CanBeDifferentiatedTwice) {
  expect_same_second_gradients({make_images(kSmall)}, fast(kSmall), reference(kSmall));
}

TEST(MaxPool2d, RefusesWhatLibtorchRefuses) {
  const at::Tensor images = make_images(kSmall);
  EXPECT_THROW(max_pool2d(images, 6, 1), c10::Error);
  EXPECT_THROW(max_pool2d(images, 0, 1), c10::Error);
  EXPECT_THROW(max_pool2d(images[0][0], 2, 1), c10::Error);
}

}  // namespace
}  // namespace sotto::models::ops
