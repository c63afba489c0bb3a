#include "privacy/outer_products.h"

#include "../support/expect_user_error.h"
#include "privacy/access.h"

#include <ATen/ATen.h>

#include <gtest/gtest.h>

#include <limits>

namespace sotto::privacy {
namespace {

at::Tensor sum_of(const at::Tensor& left, const at::Tensor& right, double bound) {
  NamedTensors factors;
  factors.push_back({"left", left.clone()});
  factors.push_back({"right", right.clone()});
  Bounded bounded =
      clip_outer_products(Contribution(std::move(factors)), {"products", 1, bound}, Adjacency::kAddRemove);
  return Access::values(bounded)[0].value;
}

TEST(OuterProducts, ThousandsOfRecordsAreAddedUpAsIfByHand) {
  at::manual_seed(1);
  const at::Tensor left = at::randn({5000, 7}), right = at::randn({5000, 11});
  const double bound = 5;
  at::Tensor expected = at::zeros({7, 11}, at::kDouble);
  for (int64_t i = 0; i < left.size(0); ++i) {
    const at::Tensor product = at::outer(left[i].to(at::kDouble), right[i].to(at::kDouble));
    expected += product * std::min(1.0, bound * (1 - 1e-6) / product.norm().item<double>());
  }
  EXPECT_LT((sum_of(left, right, bound) - expected).norm().item<double>(), 1e-9);
}

// What moves is the record, not the rounding of thousands of others.
TEST(OuterProducts, NoRecordMovesALargeSumByMoreThanItsBound) {
  at::manual_seed(2);
  const at::Tensor left = at::randn({3000, 6}), right = at::randn({3000, 10});
  const at::Tensor others = sum_of(left.narrow(0, 0, 2999), right.narrow(0, 0, 2999), 0.5);
  EXPECT_LE((sum_of(left, right, 0.5) - others).norm().item<double>(), 0.5);
}

TEST(OuterProducts, AnyFactorsKeepTheBound) {
  const double huge = 1e18, tiny = 1e-23;  // whose square no float holds
  for (const double bound : {1e-9, 1e-6, 1.0}) {
    for (const auto& [a, b] : {std::pair{tiny, huge}, {huge, tiny}, {huge, huge}, {1e30, 1e-30}, {3e38, 1.0}}) {
      const at::Tensor sum = sum_of(at::full({1, 3}, a), at::full({1, 4}, b), bound);
      EXPECT_LE(sum.norm().item<double>(), bound) << a << " " << b;
    }
  }
}

TEST(OuterProducts, ARecordThatIsNoNumberCountsForNothing) {
  for (const float bad : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    at::Tensor left = at::ones({2, 3}), right = at::ones({2, 4});
    left[1][0] = bad;
    EXPECT_TRUE(sum_of(left, right, 9).equal(sum_of(left.narrow(0, 0, 1), right.narrow(0, 0, 1), 9)));
    EXPECT_TRUE(sum_of(right, left, 9).equal(sum_of(right.narrow(0, 0, 1), left.narrow(0, 0, 1), 9)));
  }
}

// The others are zeros, so that what is left of the sum is the one record.
TEST(OuterProducts, WhatARecordAddsIsTheSameWhoeverElseIsThere) {
  at::manual_seed(3);
  const at::Tensor left = at::randn({1, 67}), right = at::randn({1, 129});
  const at::Tensor alone = sum_of(left, right, 2);
  for (const int64_t others : {1, 2, 7, 31, 63, 64, 200}) {
    for (const int64_t before : {int64_t{0}, others / 2, others}) {
      const auto among = [&](const at::Tensor& row) {
        at::Tensor rows = at::zeros({others + 1, row.size(1)});
        rows[before] = row[0];
        return rows;
      };
      EXPECT_TRUE(sum_of(among(left), among(right), 2).equal(alone)) << others;
    }
  }
}

TEST(OuterProducts, BoundsTooSmallToBeKeptAreRefused) {
  for (const double bound :
       {0.0, -1.0, 9e-10, std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_USER_ERROR(sum_of(at::ones({1, 2}), at::ones({1, 2}), bound), "the clipping bound of 'products' is");
  }
  sum_of(at::ones({1, 2}), at::ones({1, 2}), 1e-9);
}

}  // namespace
}  // namespace sotto::privacy
