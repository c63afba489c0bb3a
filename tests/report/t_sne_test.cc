#include "report/t_sne.h"

#include <ATen/ATen.h>

#include <gtest/gtest.h>

namespace sotto::report {
namespace {

TEST(TSne, KeepsGroupsThatAreFarApartApart) {
  at::manual_seed(1);
  const int64_t each = 40;
  at::Tensor points = at::randn({3 * each, 20});
  for (int64_t group = 0; group < 3; ++group) points.narrow(0, group * each, each).select(1, group).add_(30);
  const at::Tensor placed = t_sne(points, 15);
  ASSERT_EQ(placed.sizes(), (std::vector<int64_t>{3 * each, 2}));
  ASSERT_TRUE(at::isfinite(placed).all().item<bool>());
  const at::Tensor group = at::arange(3 * each).div(each, "floor");
  at::Tensor distances = at::cdist(placed, placed);
  distances.fill_diagonal_(1e9);
  EXPECT_TRUE(group.index_select(0, distances.argmin(1)).equal(group)) << "everybody's nearest is of the same group";
}

TEST(TSne, DependsOnThePointsAlone) {
  at::manual_seed(2);
  const at::Tensor points = at::randn({25, 5});
  EXPECT_TRUE(t_sne(points).equal(t_sne(points)));
}

TEST(TSne, FewAndEqualPointsAreNoTrouble) {
  for (const int64_t n : {1, 2, 3, 5}) {
    EXPECT_TRUE(at::isfinite(t_sne(at::ones({n, 4}))).all().item<bool>()) << n;
    EXPECT_EQ(t_sne(at::ones({n, 1})).size(0), n);
  }
}

}  // namespace
}  // namespace sotto::report
