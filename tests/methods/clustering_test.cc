#include "methods/prototypes/clustering.h"

#include <ATen/ATen.h>

#include <gtest/gtest.h>

namespace sotto::methods {
namespace {

// Points on the plane by angle, in degrees.
at::Tensor at_angles(const std::vector<double>& degrees) {
  const at::Tensor angle = at::tensor(degrees, at::kDouble) * (M_PI / 180);
  return at::stack({angle.cos(), angle.sin()}, 1).to(at::kFloat);
}

std::vector<int64_t> as_vector(const at::Tensor& labels) {
  return {labels.data_ptr<int64_t>(), labels.data_ptr<int64_t>() + labels.numel()};
}

TEST(Finch, OfOneAndOfTwoPointsIsOneCluster) {
  EXPECT_EQ(as_vector(finch(at_angles({10}))), (std::vector<int64_t>{0}));
  EXPECT_EQ(as_vector(finch(at_angles({10, 100}))), (std::vector<int64_t>{0, 0}));
}

TEST(Finch, LinksEveryPointToItsNearest) {
  // 0–1–3 are a chain of nearest neighbours, 90–92 a pair, and both levels above are one cluster.
  EXPECT_EQ(as_vector(finch(at_angles({0, 90, 1, 92, 3}))), (std::vector<int64_t>{0, 1, 0, 1, 0}));
}

TEST(Finch, TakesTheCoarsestLevelOfMoreThanOneCluster) {
  // First level: four pairs. Second: {0, 1, 10, 11} and {90, 91, 100, 101}. Third: one.
  EXPECT_EQ(as_vector(finch(at_angles({0, 1, 10, 11, 90, 91, 100, 101}))),
            (std::vector<int64_t>{0, 0, 0, 0, 1, 1, 1, 1}));
}

TEST(Finch, GoesByDirectionNotByLength) {
  at::Tensor points = at_angles({0, 2, 90, 92});
  points[0] *= 1000;
  EXPECT_EQ(as_vector(finch(points)), (std::vector<int64_t>{0, 0, 1, 1}));
}

TEST(Finch, IdenticalAndZeroPointsAreNoTrouble) {
  EXPECT_EQ(cluster_count(finch(at::ones({5, 3}))), 1);
  EXPECT_EQ(finch(at::zeros({3, 3})).numel(), 3);
}

TEST(KMeans, FindsGroupsThatAreFarApart) {
  RandomStream noise(1, "points");
  at::Tensor points = at::empty({90, 4}).normal_(0, 0.1, noise.torch_generator());
  for (int64_t i = 0; i < 90; ++i) points[i][i % 3] += 10;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    RandomStream stream(seed, "k-means");
    const at::Tensor labels = k_means(points, 3, stream);
    EXPECT_TRUE(labels.equal(at::arange(90).remainder(3))) << "seed " << seed;
  }
}

TEST(KMeans, CutsKToWhatThereIs) {
  RandomStream stream(1, "k-means");
  EXPECT_EQ(cluster_count(k_means(at::eye(3), 10, stream)), 3);
  EXPECT_EQ(cluster_count(k_means(at::ones({4, 2}), 3, stream)), 1) << "equal points cannot be told apart";
  EXPECT_EQ(cluster_count(k_means(at::ones({1, 2}), 1, stream)), 1);
}

TEST(KMeans, MeansAreThoseOfTheirClusters) {
  const at::Tensor points = at::tensor({1.0F, 2.0F, 3.0F, 5.0F, 10.0F, 20.0F}).view({3, 2});
  const at::Tensor means = cluster_means(points, at::tensor({0, 1, 0}, at::kLong));
  EXPECT_TRUE(means.equal(at::tensor({5.5F, 11.0F, 3.0F, 5.0F}).view({2, 2})));
}

// One record swapped for another re-clusters a whole class: why clusters' means cannot have sensitivity 2R/n.
TEST(Finch, OneSwappedPointMovesCentresByTheirWholeDistance) {
  const auto centres = [](const at::Tensor& points) { return cluster_means(points, finch(points)); };
  const at::Tensor before = centres(at_angles({0, 1, 40, 41, 80, 81}));
  const at::Tensor after = centres(at_angles({0, 1, 40, 41, 80, 42}));
  const double moved = before.size(0) == after.size(0) ? (before - after).norm().item<double>() : 2.0;
  EXPECT_GT(moved, 2.0 * 2 / 6) << "more than 2R/n for six records in the unit disc";
}

}  // namespace
}  // namespace sotto::methods
