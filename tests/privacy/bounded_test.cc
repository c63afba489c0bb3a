#include "privacy/bounded.h"

#include "base/error.h"
#include "privacy/access.h"

#include <ATen/ATen.h>

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace sotto::privacy {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

double norm_of(const Bounded& bounded) {
  double square = 0;
  for (const auto& [name, value] : Access::values(bounded))
    square += value.to(at::kDouble).square().sum().item<double>();
  return std::sqrt(square);
}

Contribution records(std::vector<std::pair<std::string, at::Tensor>> tensors) {
  NamedTensors values;
  for (auto& [name, value] : tensors) values.push_back({name, value});
  return Contribution(std::move(values));
}

TEST(ClipEach, ScalesEveryRecordAndSums) {
  const at::Tensor x = at::tensor({3.0F, 4.0F, 0.3F, 0.4F}).reshape({2, 2});
  const Bounded bounded = clip_each(records({{"x", x}}), {{"g", 1, 1.0}}, 2.0, Adjacency::kAddRemove);
  EXPECT_TRUE(at::allclose(Access::values(bounded)[0].value, at::tensor({0.45, 0.6}, at::kDouble), 1e-5));
  EXPECT_EQ(bounded.groups()[0].sensitivity, 0.5);
  EXPECT_EQ(bounded.groups()[0].coordinates, 2);
}

// Where a record may be blank, one that is not a number is: it must not be told from a record that is not there.
TEST(SumCells, ARecordThatIsNotANumberIsABlank) {
  const at::Tensor cells = at::tensor({0, 1, 1}, at::kLong);
  const auto counts = [&](Adjacency adjacency) {
    const at::Tensor x = at::tensor({1.0F, 2.0F, 3.0F, kNaN, 0.1F, 0.2F}).reshape({3, 2});
    CellRule rule{.cells = 2, .adjacency = adjacency, .parts = {{.name = "x", .width = 2, .bound = 1}}};
    return Access::values(sum_cells(records({{"x", x}, {"cell", cells}}), rule)).back().value;
  };
  EXPECT_TRUE(at::equal(counts(Adjacency::kZeroOut), at::tensor({1.0, 1.0}, at::kDouble)));
  EXPECT_TRUE(at::equal(counts(Adjacency::kAddRemove), at::tensor({1.0, 1.0}, at::kDouble)));
  EXPECT_TRUE(at::equal(counts(Adjacency::kReplace), at::tensor({1.0, 2.0}, at::kDouble))) << "a record like others";
}

TEST(ClipEach, ReplacingARecordCostsTwice) {
  const at::Tensor x = at::ones({3, 4});
  EXPECT_EQ(clip_each(records({{"x", x}}), {{"g", 1, 1.5}}, 3.0, Adjacency::kReplace).groups()[0].sensitivity, 1.0);
}

TEST(ClipEach, TensorsOfAGroupAreClippedTogetherAndGroupsApart) {
  const at::Tensor a = at::tensor({3.0F}).reshape({1, 1}), b = at::tensor({4.0F}).reshape({1, 1});
  const Bounded joint = clip_each(records({{"a", a}, {"b", b}}), {{"both", 2, 1.0}}, 1.0, Adjacency::kAddRemove);
  EXPECT_NEAR(norm_of(joint), 1.0, 1e-5);
  const Bounded apart =
      clip_each(records({{"a", a}, {"b", b}}), {{"a", 1, 1.0}, {"b", 1, 1.0}}, 1.0, Adjacency::kAddRemove);
  EXPECT_NEAR(norm_of(apart), std::sqrt(2.0), 1e-5);
}

// One record, whatever it holds, moves the sum by no more than the sensitivity says: tried with records made to break
// it.
TEST(ClipEach, NoRecordMovesTheSumByMoreThanItsSensitivity) {
  at::manual_seed(1);
  const at::Tensor others = at::randn({20, 50}) * 10;
  for (const float size : {0.0F, 1e-30F, 1e-3F, 1.0F, 1e6F, 1e30F, 3e38F, kNaN, kInf, -kInf}) {
    const at::Tensor with = at::cat({others, at::full({1, 50}, size)});
    const Bounded one = clip_each(records({{"x", with.clone()}}), {{"g", 1, 0.7}}, 5.0, Adjacency::kAddRemove);
    const Bounded other = clip_each(records({{"x", others.clone()}}), {{"g", 1, 0.7}}, 5.0, Adjacency::kAddRemove);
    const double moved = (Access::values(one)[0].value - Access::values(other)[0].value).norm().item<double>();
    EXPECT_LE(moved, one.groups()[0].sensitivity * (1 + 0x1p-10)) << size;
  }
}

TEST(ClipEach, ANonFiniteRecordCountsAsZero) {
  const at::Tensor x = at::tensor({kNaN, 1.0F, 0.5F, 0.0F, kInf, 0.0F}).reshape({3, 2});
  const Bounded bounded = clip_each(records({{"x", x}}), {{"g", 1, 1.0}}, 1.0, Adjacency::kAddRemove);
  EXPECT_TRUE(at::allclose(Access::values(bounded)[0].value, at::tensor({0.5, 0.0}, at::kDouble), 1e-5));
}

TEST(ClipEach, NoRecordsGiveZero) {
  const Bounded bounded = clip_each(records({{"x", at::empty({0, 3})}}), {{"g", 1, 1.0}}, 1.0, Adjacency::kReplace);
  EXPECT_EQ(norm_of(bounded), 0.0);
  EXPECT_EQ(bounded.groups()[0].coordinates, 3);
}

TEST(ClipEach, ClipsInTheNormAskedFor) {
  const at::Tensor x = at::tensor({3.0F, 4.0F}).reshape({1, 2});
  const Bounded bounded = clip_each(records({{"x", x}}), {{"g", 1, 1.0}}, 1.0, Adjacency::kAddRemove, Norm::kL1);
  EXPECT_NEAR(Access::values(bounded)[0].value.abs().sum().item<double>(), 1.0, 1e-5);
}

TEST(ClipWhole, CostsTwiceTheBoundForRecordsWhateverTheirAdjacency) {
  for (const Adjacency adjacency : {Adjacency::kAddRemove, Adjacency::kReplace, Adjacency::kReplaceSameLabel}) {
    EXPECT_EQ(clip_whole(records({{"x", at::ones({5})}}), {{"g", 1, 0.5}}, {adjacency, Unit::kRecord})
                  .groups()[0]
                  .sensitivity,
              1.0);
  }
  const auto sensitivity = [](Adjacency adjacency) {
    return clip_whole(records({{"x", at::ones({5})}}), {{"g", 1, 0.5}}, {adjacency, Unit::kClient})
        .groups()[0]
        .sensitivity;
  };
  EXPECT_EQ(sensitivity(Adjacency::kAddRemove), 0.5);
  EXPECT_EQ(sensitivity(Adjacency::kReplace), 1.0);
}

TEST(ClipWhole, ZeroAndNonFiniteValuesStayHarmless) {
  for (const float entry : {0.0F, kNaN, kInf}) {
    const Bounded bounded = clip_whole(records({{"x", at::full({4}, entry)}}), {{"g", 1, 1.0}}, {});
    EXPECT_EQ(norm_of(bounded), 0.0) << entry;
  }
}

TEST(Clip, BadBoundsAreUserErrors) {
  for (const double bound : {0.0, -1.0, static_cast<double>(kNaN), static_cast<double>(kInf)}) {
    EXPECT_THROW(clip_whole(records({{"x", at::ones({4})}}), {{"g", 1, bound}}, {}), UserError) << bound;
  }
}

TEST(ClampEach, KeepsScoresInRange) {
  const Bounded bounded = clamp_each(records({{"s", at::tensor({-1.0F, 0.2F, kNaN, kInf})}}), 0.5);
  EXPECT_TRUE(at::allclose(Access::values(bounded)[0].value, at::tensor({0.0F, 0.2F, 0.0F, 0.5F})));
  EXPECT_EQ(bounded.norm(), Norm::kMax);
}

TEST(CountEach, CountsEveryClassAndKnowsWhatAChangeMoves) {
  const auto count = [](Adjacency adjacency) {
    return count_each(records({{"labels", at::tensor({2, 0, 2}, at::kLong)}}), 4, adjacency);
  };
  EXPECT_TRUE(at::equal(Access::values(count(Adjacency::kAddRemove))[0].value, at::tensor({1, 0, 2, 0}, at::kLong)));
  EXPECT_EQ(count(Adjacency::kAddRemove).groups()[0].sensitivity, 1.0);
  EXPECT_EQ(count(Adjacency::kReplace).groups()[0].sensitivity, std::sqrt(2.0));
  EXPECT_EQ(count(Adjacency::kReplaceSameLabel).groups()[0].sensitivity, 0.0);
}

}  // namespace
}  // namespace sotto::privacy
