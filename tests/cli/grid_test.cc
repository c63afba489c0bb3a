#include "base/error.h"
#include "cli/sweep_grid.h"

#include <gtest/gtest.h>

namespace sotto::cli {
namespace {

TEST(Grid, MakesAllCombinations) {
  const auto cells = expand_grid({"a=1,2", "b=[\"x\", \"y\", \"z\"]"});
  ASSERT_EQ(cells.size(), 6U);
  EXPECT_EQ(cells[1].overrides, (std::vector<std::string>{"a=1", "b=y"}));
  EXPECT_EQ(expand_grid({}).size(), 1U);
}

TEST(Grid, FindsTheReference) {
  const auto cells = expand_grid({"a=1,2", "b=3,4"});
  EXPECT_EQ(find_cell(cells, "a=2,b=3"), 2U);
  EXPECT_THROW(find_cell(cells, "a=2"), UserError);
  EXPECT_THROW(find_cell(cells, "a=5,b=3"), UserError);
}

TEST(Grid, RefusesNonsense) {
  EXPECT_THROW(expand_grid({"a"}), UserError);
  EXPECT_THROW(expand_grid({"a=1,,2"}), UserError);
  EXPECT_THROW(expand_grid({"seed=1,2"}), UserError);
}

}  // namespace
}  // namespace sotto::cli
