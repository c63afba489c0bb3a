#include "base/error.h"
#include "experiments/sweep_grid.h"

#include <gtest/gtest.h>

namespace sotto::experiments {
namespace {

TEST(Grid, MakesAllCombinations) {
  const auto cells = expand_grid({"a=1,2", "b=[\"x\", \"y\", \"z\"]"});
  ASSERT_EQ(cells.size(), 6U);
  EXPECT_EQ(cells[1].overrides, (std::vector<std::string>{"a=1", "b=y"}));
  EXPECT_EQ(expand_grid({}).size(), 1U);
}

TEST(Grid, TablesSetSeveralKeysAtOnce) {
  const auto cells = expand_grid({"model=[{name=\"logistic\"}, {name=\"mlp\", hidden=[16]}]"});
  ASSERT_EQ(cells.size(), 2U);
  EXPECT_EQ(cells[0].overrides, std::vector<std::string>{"model={name = \"logistic\"}"});
  EXPECT_EQ(cells[1].overrides, std::vector<std::string>{"model={hidden = [16], name = \"mlp\"}"});
}

TEST(Grid, ComparesAllWithOneCell) {
  const auto cells = expand_grid({"a=1,2", "b=3,4"});
  using Some = std::optional<size_t>;
  EXPECT_EQ(references(cells, "a=2,b=3"), (std::vector<Some>{2U, 2U, std::nullopt, 2U}));
  EXPECT_EQ(references(cells, ""), std::vector<Some>(4));
  EXPECT_THROW(references(cells, "a=2"), UserError);
  EXPECT_THROW(references(cells, "a=5,b=3"), UserError);
}

TEST(Grid, ComparesRowsAtEveryPoint) {
  const auto cells = combine({{"ours", {"m=1"}}, {"theirs", {"m=2", "a=9"}}}, expand_grid({"a=1,2"}));
  ASSERT_EQ(cells.size(), 4U);
  EXPECT_EQ(cells[3].row, "theirs");
  EXPECT_EQ(cells[3].overrides, (std::vector<std::string>{"m=2", "a=9", "a=2"})) << "the grid has the last word";
  using Some = std::optional<size_t>;
  EXPECT_EQ(references(cells, "ours"), (std::vector<Some>{std::nullopt, 0U, std::nullopt, 2U}));
  EXPECT_THROW(references(cells, "nobody"), UserError);
}

TEST(Grid, RefusesNonsense) {
  EXPECT_THROW(expand_grid({"a"}), UserError);
  EXPECT_THROW(expand_grid({"a=1,,2"}), UserError);
  EXPECT_THROW(expand_grid({"seed=1,2"}), UserError);
  EXPECT_THROW(expand_grid({"a=[]"}), UserError);
  EXPECT_THROW(expand_grid({"a=1,2", "b=[]"}), UserError);
}

}  // namespace
}  // namespace sotto::experiments
