#include "privacy/noise/discrete.h"

#include "../../support/expect_user_error.h"
#include "goodness.h"

#include <gtest/gtest.h>

namespace sotto::privacy {
namespace {

constexpr int kDraws = 100000;

NoiseSource source_named(const char* purpose) {
  return NoiseSource::replay(8, purpose, 0, 0);
}

// Against P(k) ∝ mass(k), k in [-reach, reach].
double law_p(const std::vector<int64_t>& drawn, int64_t reach, const std::function<double(double)>& mass) {
  std::vector<double> seen(2 * reach + 1), due(2 * reach + 1);
  double total = 0;
  for (int64_t k = -reach; k <= reach; ++k) total += due[k + reach] = mass(static_cast<double>(k));
  for (double& d : due) d *= static_cast<double>(drawn.size()) / total;
  for (const int64_t k : drawn) seen[std::clamp(k, -reach, reach) + reach] += 1;
  return chi_square_p(seen, due);
}

double gaussian_p(const std::vector<int64_t>& drawn, double sigma) {
  const auto reach = static_cast<int64_t>(std::ceil(8 * sigma)) + 1;
  return law_p(drawn, reach, [&](double k) { return std::exp(-k * k / (2 * sigma * sigma)); });
}

std::vector<int64_t> gaussians(double sigma) {
  std::vector<int64_t> drawn(kDraws);
  NoiseSource source = source_named("gaussian");
  discrete_gaussian(std::span(drawn), sigma, source);
  return drawn;
}

TEST(DiscreteGaussian, HasItsLaw) {
  for (const double sigma : {0.1, 0.3, 0.5, 1.0, 1.7, 12.34, 1000.0}) {
    EXPECT_GT(gaussian_p(gaussians(sigma), sigma), kPlausible) << sigma;
  }
}

TEST(DiscreteGaussian, IsNormalWhenWide) {
  std::vector<double> x;
  for (const int64_t k : gaussians(1e6)) x.push_back(static_cast<double>(k) * 1e-6);
  EXPECT_GT(smallest(normality(x)), kPlausible);
}

TEST(DiscreteGaussian, OtherLawsAreNoticed) {
  EXPECT_LT(gaussian_p(gaussians(1.0), 1.03), kRefuted);
  EXPECT_LT(gaussian_p(gaussians(12.0), 12.5), kRefuted);
  std::vector<int64_t> rounded;  // the rounded Gaussian is another law
  for (const int64_t k : gaussians(500.0)) rounded.push_back(std::llround(static_cast<double>(k) / 1000));
  EXPECT_LT(gaussian_p(rounded, 0.5), kRefuted);
}

TEST(DiscreteGaussian, OneAtATimeIsTheSame) {
  NoiseSource source = source_named("gaussian");
  const std::vector<int64_t> drawn = gaussians(2.5);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(discrete_gaussian(2.5, source), drawn[i]);
}

TEST(DiscreteGaussian, RefusesNonsense) {
  NoiseSource source = source_named("refused");
  for (const double bad : {0.0, -1.0, static_cast<double>(NAN), static_cast<double>(INFINITY)}) {
    EXPECT_USER_ERROR(discrete_gaussian(bad, source), "standard deviation between");
  }
}

TEST(DiscreteLaplace, HasItsLaw) {
  for (const uint64_t scale : {1, 2, 37}) {
    std::vector<int64_t> drawn(kDraws);
    NoiseSource source = source_named("laplace");
    for (int64_t& k : drawn) k = discrete_laplace(scale, source);
    const double t = static_cast<double>(scale);
    EXPECT_GT(law_p(drawn, 30 * static_cast<int64_t>(scale), [&](double k) { return std::exp(-std::abs(k) / t); }),
              kPlausible);
  }
}

}  // namespace
}  // namespace sotto::privacy
