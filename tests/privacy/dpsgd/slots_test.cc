#include "privacy/dpsgd/slots.h"

#include <ATen/ATen.h>

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <vector>

namespace sotto::privacy {
namespace {

using Rows = std::vector<at::Tensor>;

TEST(Slots, AreFewWholeTilesOrTheBatchItself) {
  EXPECT_EQ(suited_slots(10, false), 10);
  EXPECT_EQ(suited_slots(64, false), 64);
  EXPECT_EQ(suited_slots(80, false), 48);
  EXPECT_EQ(suited_slots(10, true), 16);
  EXPECT_EQ(suited_slots(200, true), 64);
  EXPECT_EQ(suited_slots(200, true, 5), 5);
  EXPECT_EQ(suited_slots(100000, false), kMostSlots);
  EXPECT_EQ(suited_slots(0, false), 1);
}

TEST(WithBlanks, LeavesNothingOfEarlierRows) {
  at::Tensor buffer;
  EXPECT_TRUE(with_blanks(at::ones({3, 2}), 4, buffer)
                  .equal(at::tensor({1., 1., 1., 1., 1., 1., 0., 0.}).view({4, 2}).to(at::kFloat)));
  EXPECT_TRUE(with_blanks(at::full({1, 2}, 7.0f), 4, buffer)
                  .equal(at::tensor({7., 7., 0., 0., 0., 0., 0., 0.}).view({4, 2}).to(at::kFloat)));
}

TEST(WithBlanks, PutsRowsWhereANewTensorWouldBe) {
  const auto offset = [](const at::Tensor& rows) { return reinterpret_cast<uintptr_t>(rows.data_ptr()) % 64; };
  const at::Tensor all = at::randn({9, 3});
  at::Tensor buffer;
  const at::Tensor some = all.narrow(0, 1, 8);
  ASSERT_NE(offset(some), 0u);
  EXPECT_EQ(offset(with_blanks(some, 8, buffer)), 0u);
  EXPECT_TRUE(with_blanks(some, 8, buffer).equal(some));
}

TEST(RowsAreAlike, ToTheLastBit) {
  at::Tensor rows = at::ones({5, 3});
  EXPECT_TRUE(rows_are_alike(rows));
  rows[4][2] = 1.0f + std::numeric_limits<float>::epsilon();
  EXPECT_FALSE(rows_are_alike(rows));
  EXPECT_FALSE(rows_are_alike(at::full({5, 3}, std::numeric_limits<float>::quiet_NaN())));
}

TEST(FixedSlots, JoinWhatTheyComputed) {
  const at::Tensor x = at::randn({130, 3}), y = at::arange(130, at::kLong);
  FixedSlots slots(16);
  const Rows found = slots.apply({x, y}, [](const Rows& some) -> Rows { return {some[0], some[1] * 2}; });
  EXPECT_TRUE(found[0].equal(x));
  EXPECT_TRUE(found[1].equal(y * 2));
  EXPECT_EQ(slots.slots(), 16);
}

TEST(FixedSlots, NoRecordsMakeNoRows) {
  FixedSlots slots(8);
  const Rows found = slots.apply({at::empty({0, 3})}, [](const Rows& some) -> Rows { return {some[0].sum(1)}; });
  EXPECT_EQ(found[0].sizes(), at::IntArrayRef({0}));
}

// A kernel that rounds by how many rows there are.
TEST(FixedSlots, ARecordDoesNotSeeHowManyOthersThereAre) {
  const auto kernel = [](const Rows& some) -> Rows {
    return {some[0] * (1.0 + 1e-6 * static_cast<double>(some[0].size(0)))};
  };
  const at::Tensor x = at::randn({40, 3});
  ASSERT_FALSE(kernel({x})[0].narrow(0, 0, 7).equal(kernel({x.narrow(0, 0, 7)})[0]));
  FixedSlots slots(16);
  const at::Tensor all = slots.apply({x}, kernel)[0];
  for (const int64_t count : {1, 7, 16, 17, 39}) {
    EXPECT_TRUE(slots.apply({x.narrow(0, 40 - count, count)}, kernel)[0].equal(all.narrow(0, 40 - count, count)));
  }
  EXPECT_EQ(slots.slots(), 16);
}

// A kernel that rounds by where a row is: then there is one slot.
TEST(FixedSlots, ARecordDoesNotSeeItsPlace) {
  const auto kernel = [](const Rows& some) -> Rows {
    const at::Tensor place = at::arange(some[0].size(0)).floor_divide(7).unsqueeze(1);
    return {some[0] * (1.0 + 1e-6 * place)};
  };
  const at::Tensor x = at::randn({40, 3});
  ASSERT_FALSE(kernel({x})[0].narrow(0, 30, 7).equal(kernel({x.narrow(0, 30, 7)})[0]));
  FixedSlots slots(16);
  const at::Tensor all = slots.apply({x}, kernel)[0];
  EXPECT_EQ(slots.slots(), 1);
  EXPECT_TRUE(slots.apply({x.narrow(0, 30, 7)}, kernel)[0].equal(all.narrow(0, 30, 7)));
}

}  // namespace
}  // namespace sotto::privacy
