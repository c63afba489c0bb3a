#include "base/named_tensors.h"

#include <ATen/ATen.h>

#include <gtest/gtest.h>

#include <limits>

namespace sotto {
namespace {

NamedTensors sample() {
  return {{"w", at::ones({2, 2})}, {"b", at::zeros({3})}};
}

TEST(NamedTensors, FindsByName) {
  EXPECT_EQ(find_tensor(sample(), "b").numel(), 3);
  EXPECT_FALSE(find_tensor(sample(), "c").defined());
}

TEST(NamedTensors, ClonesShareNothing) {
  const NamedTensors original = sample();
  NamedTensors copy = clone(original);
  copy[0].value.fill_(5);
  EXPECT_EQ(original[0].value.sum().item<float>(), 4);
}

TEST(NamedTensors, ArithmeticIsInPlace) {
  NamedTensors to = sample();
  const at::Tensor alias = to[0].value;
  add_scaled(to, sample(), 2.0);
  scale(to, 0.5);
  EXPECT_EQ(alias.sum().item<float>(), 6);
  copy_values(to, sample());
  EXPECT_EQ(alias.sum().item<float>(), 4);
  EXPECT_EQ(total_elements(to), 7);
}

TEST(NamedTensors, FindsWhatIsNotFinite) {
  NamedTensors tensors = sample();
  tensors.push_back({"count", at::ones({2}, at::kLong)});
  EXPECT_TRUE(all_finite(tensors));
  tensors[1].value[1] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_FALSE(all_finite(tensors));
}

TEST(NamedTensorsDeathTest, MismatchedNamesAreABug) {
  NamedTensors to = sample();
  EXPECT_DEATH(copy_values(to, {{"x", at::ones({2, 2})}, {"b", at::zeros({3})}}), "internal error");
}

}  // namespace
}  // namespace sotto
