#include "base/random.h"

#include <ATen/ATen.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

namespace sotto {
namespace {

TEST(RandomStream, SameNameGivesSameNumbers) {
  RandomStream a(7, "batch-order", 3, 11);
  RandomStream b(7, "batch-order", 3, 11);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(a(), b());
}

TEST(RandomStream, AnyPartOfTheNameChangesTheNumbers) {
  std::set<uint64_t> first;
  first.insert(RandomStream(7, "a", 1, 2)());
  first.insert(RandomStream(8, "a", 1, 2)());
  first.insert(RandomStream(7, "b", 1, 2)());
  first.insert(RandomStream(7, "a", 2, 2)());
  first.insert(RandomStream(7, "a", 1, 3)());
  first.insert(RandomStream(7, "a", 2, 1)());
  EXPECT_EQ(first.size(), 6u);
}

// Pinned: a run must be repeatable by another build, so these numbers may never change.
TEST(RandomStream, NumbersAreFixedForAllTime) {
  RandomStream stream(1, "pinned", 2, 3);
  EXPECT_EQ(stream(), 6186547572133496816u);
  EXPECT_EQ(stream(), 5690398681061602583u);
  EXPECT_DOUBLE_EQ(RandomStream(1, "pinned").normal(), -1.2431480392339924);
  EXPECT_DOUBLE_EQ(RandomStream(1, "pinned").gamma(0.5), 1.0586310465352911);
  EXPECT_EQ(RandomStream(1, "pinned").permutation(6), (std::vector<int64_t>{2, 3, 1, 4, 5, 0}));
}

TEST(RandomStream, UniformFillsTheUnitInterval) {
  RandomStream stream(1, "uniform");
  double sum = 0;
  double square = 0;
  constexpr int kDraws = 100000;
  for (int i = 0; i < kDraws; ++i) {
    const double u = stream.uniform();
    ASSERT_GE(u, 0.0);
    ASSERT_LT(u, 1.0);
    sum += u;
    square += u * u;
  }
  EXPECT_NEAR(sum / kDraws, 0.5, 0.005);
  EXPECT_NEAR(square / kDraws, 1.0 / 3, 0.005);
}

TEST(RandomStream, BelowIsUnbiasedAndInRange) {
  RandomStream stream(1, "below");
  std::vector<int> counts(6);
  constexpr int kDraws = 60000;
  for (int i = 0; i < kDraws; ++i) ++counts.at(stream.below(6));
  double chi_square = 0;
  for (const int count : counts) chi_square += std::pow(count - kDraws / 6.0, 2) / (kDraws / 6.0);
  EXPECT_LT(chi_square, 25.7);  // 5 degrees of freedom, p = 1e-4
  EXPECT_EQ(stream.below(1), 0u);
}

TEST(RandomStream, NormalHasItsMoments) {
  RandomStream stream(1, "normal");
  constexpr int kDraws = 200000;
  double sum = 0, square = 0, fourth = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double x = stream.normal();
    sum += x;
    square += x * x;
    fourth += x * x * x * x;
  }
  EXPECT_NEAR(sum / kDraws, 0.0, 0.012);
  EXPECT_NEAR(square / kDraws, 1.0, 0.015);
  EXPECT_NEAR(fourth / kDraws, 3.0, 0.12);
}

TEST(RandomStream, GammaHasItsMean) {
  RandomStream stream(1, "gamma");
  double sum = 0;
  for (int i = 0; i < 50000; ++i) sum += stream.gamma(0.3);
  EXPECT_NEAR(sum / 50000, 0.3, 0.015);
}

TEST(RandomStream, DirichletSumsToOneEvenForTinyAlpha) {
  for (const double alpha : {1e-6, 0.1, 1.0, 100.0}) {
    const auto weights = RandomStream(1, "dirichlet").dirichlet(alpha, 10);
    EXPECT_NEAR(std::accumulate(weights.begin(), weights.end(), 0.0), 1.0, 1e-9) << alpha;
    EXPECT_TRUE(std::all_of(weights.begin(), weights.end(), [](double w) { return w >= 0 && std::isfinite(w); }))
        << alpha;
  }
  const auto even = RandomStream(1, "dirichlet").dirichlet(1e6, 10);
  for (const double weight : even) EXPECT_NEAR(weight, 0.1, 0.01);
}

TEST(RandomStream, PermutationHoldsEveryNumberOnce) {
  auto order = RandomStream(1, "permutation").permutation(1000);
  EXPECT_FALSE(std::is_sorted(order.begin(), order.end()));
  std::sort(order.begin(), order.end());
  for (int64_t i = 0; i < 1000; ++i) EXPECT_EQ(order[static_cast<size_t>(i)], i);
}

TEST(RandomStream, SampleWithoutReplacementIsSortedDistinctAndUniform) {
  RandomStream stream(1, "sample");
  std::vector<int> counts(10);
  for (int i = 0; i < 20000; ++i) {
    const auto sample = stream.sample_without_replacement(10, 3);
    ASSERT_EQ(sample.size(), 3u);
    ASSERT_TRUE(std::is_sorted(sample.begin(), sample.end()));
    ASSERT_EQ(std::set<int64_t>(sample.begin(), sample.end()).size(), 3u);
    for (const int64_t value : sample) ++counts.at(static_cast<size_t>(value));
  }
  for (const int count : counts) EXPECT_NEAR(count, 6000, 330);
  EXPECT_EQ(stream.sample_without_replacement(5, 5), (std::vector<int64_t>{0, 1, 2, 3, 4}));
  EXPECT_TRUE(stream.sample_without_replacement(5, 0).empty());
}

TEST(RandomStream, TorchGeneratorFollowsTheStream) {
  const auto draw = [](uint64_t seed) {
    auto generator = RandomStream(seed, "init").torch_generator();
    return at::randn({8}, generator);
  };
  EXPECT_TRUE(at::equal(draw(1), draw(1)));
  EXPECT_FALSE(at::equal(draw(1), draw(2)));
}

}  // namespace
}  // namespace sotto
