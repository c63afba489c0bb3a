#include "data/synthetic_digits.h"

#include "base/error.h"
#include "data/digit_outlines.h"

#include <ATen/ATen.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <cmath>

namespace sotto::data {
namespace {

TEST(SyntheticDigits, AreBalancedColourImages) {
  const Dataset digits = synthetic_digits(1003, 200, 1);
  EXPECT_EQ(digits.kind, Kind::kImages);
  EXPECT_EQ(digits.classes(), 10);
  EXPECT_EQ(digits.domains(), 1);
  EXPECT_EQ(digits.train.x.sizes(), at::IntArrayRef({1003, 3, 32, 32}));
  EXPECT_EQ(digits.train.x.scalar_type(), at::kByte);
  EXPECT_EQ(digits.test.size(), 200);
  EXPECT_EQ(digits.train.domain.size(0), 1003);
  const at::Tensor counts = at::bincount(digits.train.y, {}, 10);
  EXPECT_GE(counts.min().item<int64_t>(), 100);
  EXPECT_LE(counts.max().item<int64_t>(), 101);
}

TEST(SyntheticDigits, DependOnSeedAndPositionAlone) {
  const Dataset digits = synthetic_digits(600, 50, 1);
  EXPECT_TRUE(at::equal(synthetic_digits(600, 50, 1).train.x, digits.train.x));
  EXPECT_TRUE(at::equal(synthetic_digits(40, 0, 1).train.x, digits.train.x.slice(0, 0, 40)));
  EXPECT_FALSE(at::equal(synthetic_digits(40, 0, 2).train.x, digits.train.x.slice(0, 0, 40)));
  EXPECT_FALSE(at::equal(digits.test.x, digits.train.x.slice(0, 0, 50)));
}

TEST(SyntheticDigits, DoNotDependOnTheNumberOfThreads) {
  const at::Tensor with_all = synthetic_digits(600, 0, 1).train.x;
  cpu_set_t allowed;
  ASSERT_EQ(sched_getaffinity(0, sizeof(allowed), &allowed), 0);
  int first = 0;
  while (!CPU_ISSET(first, &allowed)) ++first;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(first, &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
  const at::Tensor with_one = synthetic_digits(600, 0, 1).train.x;
  ASSERT_EQ(sched_setaffinity(0, sizeof(allowed), &allowed), 0);
  EXPECT_TRUE(at::equal(with_all, with_one));
}

TEST(SyntheticDigits, EveryImageIsDifferentAndShowsSomething) {
  const at::Tensor images = synthetic_digits(400, 0, 1).train.x.view({400, -1}).to(at::kFloat);
  EXPECT_GT(images.std(1).min().item<double>(), 12.0);
  const at::Tensor distances = at::cdist(images, images) + at::eye(400) * 1e9;
  EXPECT_GT(distances.min().item<double>(), 100.0);
}

TEST(SyntheticDigits, RefusesImpossibleNumbers) {
  EXPECT_THROW(synthetic_digits(0, 10, 1), UserError);
  EXPECT_THROW(synthetic_digits(10, -1, 1), UserError);
}

TEST(DigitOutlines, AreCentredAndOneUnitHigh) {
  for (const DigitOutlines& typeface : load_digit_outlines()) {
    for (size_t digit = 0; digit < 10; ++digit) {
      double low = 1e9;
      double high = -1e9;
      for (const auto& contour : typeface[digit]) {
        EXPECT_GE(contour.size(), 8U);
        for (const Point& point : contour) {
          low = std::min(low, point.y);
          high = std::max(high, point.y);
          EXPECT_LT(std::abs(point.x), 0.6);
        }
      }
      EXPECT_NEAR(low, -0.5, 1e-9);
      EXPECT_NEAR(high, 0.5, 1e-9);
      const size_t holes = digit == 8 ? 2 : (digit == 0 || digit == 4 || digit == 6 || digit == 9) ? 1 : 0;
      EXPECT_GE(typeface[digit].size(), holes + 1) << "digit " << digit;
    }
  }
}

}  // namespace
}  // namespace sotto::data
