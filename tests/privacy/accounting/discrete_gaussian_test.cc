// Discrete Gaussians: certificates against the divergence of the true laws, summed integer by integer.
#include "../../support/expect_user_error.h"
#include "privacy/accounting/accountant.h"
#include "privacy/accounting/calibrate.h"
#include "privacy/accounting/gaussian.h"
#include "privacy/accounting/loss_grid.h"
#include "privacy/accounting/pld.h"
#include "privacy/accounting/proven.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

namespace sotto::privacy {
namespace {

// P(X - 1 = j) and the loss at each integer j, by the definition.
class Law {
 public:
  explicit Law(long double stddev) : variance_(stddev * stddev), reach_(static_cast<int64_t>(30 * stddev) + 3) {
    for (int64_t j = -reach_; j <= reach_; ++j) total_ += weight(j);
  }
  int64_t reach() const { return reach_; }
  long double mass(int64_t j) const { return weight(j) / total_; }
  long double loss(int64_t j) const { return (static_cast<long double>(j) + 0.5L) / variance_; }

 private:
  long double weight(int64_t j) const {
    return std::exp(-static_cast<long double>(j) * static_cast<long double>(j) / (2 * variance_));
  }
  long double variance_;
  int64_t reach_;
  long double total_ = 0;
};

long double delta_of_one(const Law& law, long double epsilon) {
  long double sum = 0;
  for (int64_t j = law.reach(); j >= -law.reach(); --j) {
    if (law.loss(j) > epsilon) sum += law.mass(j) * -std::expm1(epsilon - law.loss(j));
  }
  return sum;
}

// Two integers move: the mass of each sum of the two, then δ.
long double delta_of_two(const Law& law, long double epsilon) {
  long double sum = 0;
  for (int64_t i = -law.reach(); i <= law.reach(); ++i) {
    for (int64_t j = -law.reach(); j <= law.reach(); ++j) {
      const long double loss = law.loss(i) + law.loss(j);
      if (loss > epsilon) sum += law.mass(i) * law.mass(j) * -std::expm1(epsilon - loss);
    }
  }
  return sum;
}

template <typename F>
double epsilon_at(const F& delta_at, double delta) {
  if (delta_at(0) <= delta) return 0;
  long double low = 0;
  long double high = 1e-6L;
  while (delta_at(high) > delta) high *= 2;
  for (int i = 0; i < 60; ++i) {
    const long double middle = (low + high) / 2;
    (delta_at(middle) <= delta ? high : low) = middle;
  }
  return static_cast<double>(high);
}

double certified(const std::vector<Steps>& steps, double delta) {
  return pld_epsilon(steps, delta);
}

TEST(DiscreteGaussian, OneMovedIntegerIsJustAboveTheSum) {
  for (const double stddev : {0.001, 0.05, 0.2, 0.31, 0.5, 0.8, 1.0, 1.7, 2.0, 3.3, 10.0, 101.7}) {
    const Law law(stddev);
    for (const double delta : {0.2, 1e-3, 1e-5, 1e-9, 1e-14}) {
      const double exact = epsilon_at([&](long double e) { return delta_of_one(law, e); }, delta);
      const double bound = certified({{Step::discrete_gaussian(stddev), 1}}, delta);
      EXPECT_GE(bound, exact * (1 - 1e-12)) << stddev << " " << delta;
      EXPECT_LE(bound, exact * 1.001 + 1e-8) << stddev << " " << delta;
    }
  }
}

TEST(DiscreteGaussian, TwoMovedIntegersAreTwoSteps) {
  for (const double stddev : {0.3, 0.5, 1.0, 2.0, 3.7}) {
    const Law law(stddev);
    for (const double delta : {1e-2, 1e-5, 1e-9}) {
      const double exact = epsilon_at([&](long double e) { return delta_of_two(law, e); }, delta);
      const double bound = certified({{Step::discrete_gaussian(stddev), 2}}, delta);
      EXPECT_GE(bound, exact * (1 - 1e-12)) << stddev << " " << delta;
      EXPECT_LE(bound, exact * 1.001 + 1e-8) << stddev << " " << delta;
    }
  }
}

TEST(DiscreteGaussian, DeltaIsJustAboveTheSum) {
  for (const double stddev : {0.4, 1.0, 5.0}) {
    const Law law(stddev);
    for (const double epsilon : {0.0, 0.3, 1.0, 4.0}) {
      const auto exact = static_cast<double>(delta_of_one(law, epsilon));
      if (exact < 1e-200) continue;
      const Steps steps{Step::discrete_gaussian(stddev), 1};
      const double bound = std::exp(pld_log_delta({&steps, 1}, epsilon));
      EXPECT_GE(bound, exact * (1 - 1e-12)) << stddev << " " << epsilon;
      EXPECT_LE(bound, exact * 1.01) << stddev << " " << epsilon;
    }
  }
}

// With atoms far closer than the noise is wide, it costs what the Gaussian costs.
TEST(DiscreteGaussian, TendsToTheGaussian) {
  for (const double stddev : {30.0, 1000.0, 1e5}) {
    for (const int64_t steps : {10, 1000}) {
      const double gaussian = gaussian_epsilon(std::sqrt(static_cast<double>(steps)) / stddev, std::log(1e-5));
      const double discrete = certified({{Step::discrete_gaussian(stddev), steps}}, 1e-5);
      EXPECT_NEAR(discrete / gaussian, 1, stddev < 100 ? 2e-2 : 1e-3) << stddev << " " << steps;
    }
  }
  // Sums of many lattice variables forget the lattice.
  const double many = certified({{Step::discrete_gaussian(3), 1000}}, 1e-5);
  EXPECT_NEAR(many / gaussian_epsilon(std::sqrt(1000.0) / 3, std::log(1e-5)), 1, 1e-3);
}

// δ of one discrete and one continuous Gaussian, the latter in closed form given the former.
TEST(DiscreteGaussian, ComposesWithGaussians) {
  for (const double stddev : {0.5, 1.3, 4.0}) {
    const Law law(stddev);
    for (const double multiplier : {0.8, 3.0}) {
      const auto both = [&](long double epsilon) {
        long double sum = 0;
        for (int64_t j = -law.reach(); j <= law.reach(); ++j) {
          const auto rest = static_cast<double>(epsilon - law.loss(j));
          // δ(-ε) = 1 - e^{-ε}(1 - δ(ε)) for a symmetric pair
          const double at = std::exp(gaussian_log_delta(1 / multiplier, std::abs(rest)));
          sum += law.mass(j) * (rest >= 0 ? at : 1 - std::exp(rest) + std::exp(rest) * at);
        }
        return sum;
      };
      for (const double delta : {1e-2, 1e-5, 1e-8}) {
        const double exact = epsilon_at(both, delta);
        const double bound = certified({{Step::discrete_gaussian(stddev), 1}, {Step::gaussian(multiplier), 1}}, delta);
        EXPECT_GE(bound, exact * (1 - 1e-10)) << stddev << " " << multiplier << " " << delta;
        EXPECT_LE(bound, exact * 1.001) << stddev << " " << multiplier << " " << delta;
      }
    }
  }
}

TEST(DiscreteGaussian, GridHoldsAllOfBothDistributions) {
  for (const double stddev : {0.3, 2.0, 55.5, 3e4}) {
    const Step step = Step::discrete_gaussian(stddev);
    for (const double cells : {31.7, 1000.3, 40000.1}) {
      const double spacing = 12 / stddev / cells;
      const LossGrid grid = discretise(step, spacing, 1e-12);
      double q = grid.q_at_infinity;
      for (size_t i = 0; i < grid.mass.size(); ++i) {
        q += grid.mass[i] * std::exp(-static_cast<double>(grid.first + static_cast<int64_t>(i)) * spacing);
      }
      EXPECT_NEAR(std::accumulate(grid.mass.begin(), grid.mass.end(), grid.p_at_infinity), 1, 1e-9) << stddev;
      EXPECT_GE(std::accumulate(grid.mass.begin(), grid.mass.end(), grid.p_at_infinity + grid.p_below), 1) << stddev;
      EXPECT_NEAR(q, 1, 1e-9) << stddev;
    }
  }
}

TEST(DiscreteGaussian, IsNeverAboveItsRenyiBound) {
  for (const double stddev : {0.5, 1.0, 4.0, 40.0}) {
    const Steps steps{Step::discrete_gaussian(stddev), 2};
    const auto rdp = make_accountant(Method::kRdp);
    rdp->compose(steps.step, steps.count);
    const double exact = proven_epsilon({&steps, 1}, 1e-5);
    EXPECT_LT(exact, rdp->epsilon(1e-5)) << stddev;
    EXPECT_GT(exact, 0.5 * rdp->epsilon(1e-5)) << stddev;
    const auto zcdp = make_accountant(Method::kZcdp);
    zcdp->compose(steps.step, steps.count);
    EXPECT_NEAR(zcdp->epsilon(1e-5), 1 / (stddev * stddev) + 2 * std::sqrt(-std::log(1e-5)) / stddev, 1e-9);
  }
}

TEST(DiscreteGaussian, WhatIsNotCoveredIsRefusedWithAReason) {
  const auto accountant = make_accountant(Method::kPld);
  for (const double stddev :
       {0.0, -1.0, 1e-4, 2e5, std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_USER_ERROR(accountant->compose(Step::discrete_gaussian(stddev)), "standard deviation");
  }
  Step sampled = Step::discrete_gaussian(2);
  sampled.sampling_rate = 0.5;
  EXPECT_USER_ERROR(accountant->compose(sampled), "without sampling");
  for (const Method method : {Method::kExact, Method::kSaddle, Method::kBasic, Method::kAdvanced, Method::kClassical}) {
    const auto other = make_accountant(method);
    other->compose(Step::discrete_gaussian(2));
    EXPECT_USER_ERROR(other->epsilon(1e-5), "use");
  }
  EXPECT_USER_ERROR(calibrate({1, 1e-5, Method::kPld}, Step::discrete_gaussian(1), 1, {}), "calibrated");
}

}  // namespace
}  // namespace sotto::privacy
