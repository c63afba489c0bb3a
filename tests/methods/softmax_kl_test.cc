#include "methods/parts/softmax_kl.h"

#include <ATen/ATen.h>

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace sotto::methods {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Three passes in extended precision.
double reference(const at::Tensor& a, const at::Tensor& b) {
  const auto log_sum = [](const at::Tensor& x) {
    const long double largest = x.max().item<double>();
    long double sum = 0;
    for (int64_t i = 0; i < x.numel(); ++i) sum += std::exp(static_cast<long double>(x.data_ptr<float>()[i]) - largest);
    return largest + std::log(sum);
  };
  const long double a_sum = log_sum(a), b_sum = log_sum(b);
  long double kl = 0;
  for (int64_t i = 0; i < a.numel(); ++i) {
    const long double x = static_cast<long double>(a.data_ptr<float>()[i]) - a_sum;
    const long double y = static_cast<long double>(b.data_ptr<float>()[i]) - b_sum;
    kl += std::exp(x) * (x - y);
  }
  return static_cast<double>(kl);
}

TEST(SoftmaxKl, OfThreeNumbersByHand) {
  // softmax(0, ln 2, ln 5) = (1, 2, 5)/8 and softmax(ln 5, ln 2, 0) = (5, 2, 1)/8: KL = ½ ln 5.
  const at::Tensor a = at::tensor({0.0F, std::log(2.0F), std::log(5.0F)});
  EXPECT_NEAR(softmax_kl(a, a.flip(0)), 0.5 * std::log(5.0), 1e-7);
  EXPECT_EQ(softmax_kl(a, a), 0);
}

TEST(SoftmaxKl, AgreesWithThreePassesInExtendedPrecision) {
  at::manual_seed(1);
  for (const int64_t count : {1, 2, 1023, 1024, 1025, 5000}) {
    for (const double scale : {0.01, 1.0, 30.0}) {
      const at::Tensor a = at::randn({count}) * scale, b = at::randn({count}) * scale;
      const double expected = reference(a, b);
      EXPECT_NEAR(softmax_kl(a, b), expected, 1e-12 * (1 + expected)) << count << " entries, scale " << scale;
    }
  }
}

TEST(SoftmaxKl, OfNearbyModelsIsHalfTheVarianceOfTheirDifference) {
  at::manual_seed(2);
  const at::Tensor a = at::randn({1'000'000}) * 0.05;
  const at::Tensor b = a + at::randn_like(a) * 1e-3;
  EXPECT_NEAR(softmax_kl(a, b) / 5e-7, 1, 0.01);
}

TEST(SoftmaxKl, ManyLargeEntriesDoNotOverflow) {
  at::manual_seed(3);
  for (const int64_t count : {1'000'000, 10'000'000}) {
    const at::Tensor a = at::randn({count}).mul_(1e4), b = at::randn({count}).mul_(1e4);
    const double kl = softmax_kl(a, b);
    // Softmax of a is all on its largest entry.
    const auto [largest, where] = a.max(0);
    const double expected = b.max().item<double>() - b[where.item<int64_t>()].item<double>();
    EXPECT_NEAR(kl / expected, 1, 1e-3) << count;
  }
  const at::Tensor rising = at::linspace(-1e30, 1e30, 5000);
  EXPECT_TRUE(std::isfinite(softmax_kl(rising, rising.flip(0))));
  EXPECT_EQ(softmax_kl(rising, rising), 0);
}

TEST(SoftmaxKl, DoesNotDependOnALevelOrAnOrder) {
  at::manual_seed(4);
  const at::Tensor a = at::randn({3000}), b = at::randn({3000});
  const double kl = softmax_kl(a, b);
  EXPECT_NEAR(softmax_kl(a + 100, b - 50), kl, 1e-4);
  EXPECT_NEAR(softmax_kl(a.flip(0), b.flip(0)), kl, 1e-12);
  EXPECT_NEAR(softmax_kl(a.view({30, 100}).t(), b.view({30, 100}).t()), kl, 1e-12) << "strided";
}

TEST(SoftmaxKl, OfNothingZerosAndWhatIsNotFinite) {
  EXPECT_EQ(softmax_kl(at::empty({0}), at::empty({0})), 0);
  EXPECT_EQ(softmax_kl(at::zeros({100}), at::zeros({100})), 0);
  for (const float bad : {kInfinity, -kInfinity, std::nanf("")}) {
    at::Tensor a = at::zeros({2000});
    a[1500] = bad;
    EXPECT_TRUE(std::isnan(softmax_kl(a, at::zeros({2000})))) << bad;
    EXPECT_TRUE(std::isnan(softmax_kl(at::zeros({2000}), a))) << bad;
  }
}

}  // namespace
}  // namespace sotto::methods
