// Bounded range: the certificate against the pairs it must cover, against exponential mechanisms themselves, and what a
// top-k costs.
#include "../../support/expect_user_error.h"
#include "privacy/accounting/accountant.h"
#include "privacy/accounting/exact.h"
#include "privacy/accounting/gaussian.h"
#include "privacy/accounting/pld.h"
#include "privacy/accounting/proven.h"
#include "privacy/accounting/renyi.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

namespace sotto::privacy {
namespace {

// A likelihood ratio that is e^s or e^{s-ε}, of mean 1: the probability of the former.
double share_of_high(double epsilon, double s) {
  return (std::exp(-s) - std::exp(-epsilon)) / -std::expm1(-epsilon);
}

double delta_of_ends(double epsilon, double s, double at) {
  const double share = share_of_high(epsilon, s);
  return share * std::max(0.0, std::exp(s) - std::exp(at)) +
         (1 - share) * std::max(0.0, std::exp(s - epsilon) - std::exp(at));
}

TEST(BoundedRange, OneStepIsTheWorstOfAllPairsOfEnds) {
  for (const double epsilon : {0.01, 0.5, 2.0, 9.0}) {
    const Steps step{Step::bounded_range(epsilon), 1};
    for (const double share : {0.0, 0.1, 0.5, 0.9}) {
      const double at = share * epsilon;
      double worst = 0;
      for (int i = 0; i <= 20000; ++i) worst = std::max(worst, delta_of_ends(epsilon, epsilon * i / 20000, at));
      const double exact = std::exp(exact_log_delta({&step, 1}, at));
      EXPECT_GE(exact, worst * (1 - 1e-12)) << epsilon << " " << share;
      EXPECT_LE(exact, worst * (1 + 1e-6)) << epsilon << " " << share;
      const double certified = std::exp(pld_log_delta({&step, 1}, at));
      EXPECT_GE(certified, exact * (1 - 1e-12)) << epsilon << " " << share;
      EXPECT_LE(certified, exact * 1.001) << epsilon << " " << share;
    }
  }
}

TEST(BoundedRange, RenyiDivergenceIsTheWorstOfAllPairsOfEnds) {
  for (const double epsilon : {1e-9, 1e-3, 0.1, 1.0, 6.0, 40.0}) {
    for (const double order : {1.001, 1.5, 2.0, 8.0, 64.0, 1000.0}) {
      double worst = 0;
      for (int i = 0; i <= 2000; ++i) {
        const long double s = static_cast<long double>(epsilon) * i / 2000;
        const long double share = (std::exp(-s) - std::exp(-static_cast<long double>(epsilon))) /
                                  -std::expm1(-static_cast<long double>(epsilon));
        const long double moment = share + (1 - share) * std::exp(-order * static_cast<long double>(epsilon));
        worst = std::max(worst, static_cast<double>((order * s + std::log(moment)) / (order - 1)));
      }
      const double found = renyi_divergence(Step::bounded_range(epsilon), order);
      EXPECT_GE(found, worst * (1 - 1e-9) - 1e-15) << epsilon << " " << order;
      EXPECT_LE(found, order * epsilon * epsilon / 8 * (1 + 1e-12));
      EXPECT_LE(found, epsilon * (1 + 1e-12));
      if (epsilon < 0.1) continue;
      EXPECT_LE(found, worst * 1.001) << epsilon << " " << order;
    }
  }
}

// The most telling of all adaptive choices of ends, backwards from the last step, on a grid of likelihood ratios.
double adaptive_delta(double epsilon, int64_t count, double at) {
  constexpr int kCells = 400;  // per epsilon
  const double h = epsilon / kCells;
  const auto reach = static_cast<int64_t>(count + 1) * kCells;
  std::vector<double> value(static_cast<size_t>(2 * reach + 1));
  for (int64_t i = -reach; i <= reach; ++i) {
    value[static_cast<size_t>(i + reach)] = std::max(0.0, std::exp(static_cast<double>(i) * h) - std::exp(at));
  }
  for (int64_t step = 0; step < count; ++step) {
    std::vector<double> before = value;
    for (int64_t i = -reach + kCells; i <= reach - kCells; ++i) {
      double best = 0;
      for (int64_t j = 0; j <= kCells; ++j) {
        const double share = share_of_high(epsilon, static_cast<double>(j) * h);
        best = std::max(best, share * value[static_cast<size_t>(i + j + reach)] +
                                  (1 - share) * value[static_cast<size_t>(i + j - kCells + reach)]);
      }
      before[static_cast<size_t>(i + reach)] = best;
    }
    value = std::move(before);
  }
  return value[static_cast<size_t>(reach)];
}

TEST(BoundedRange, CompositionsAreAboveEveryAdaptiveChoice) {
  for (const double epsilon : {0.1, 1.0, 3.0}) {
    for (const int64_t count : {2, 5}) {
      const Steps steps{Step::bounded_range(epsilon), count};
      for (const double share : {0.1, 0.4, 0.7}) {
        const double at = share * epsilon * static_cast<double>(count);
        const double worst = adaptive_delta(epsilon, count, at);
        EXPECT_GE(proven_delta({&steps, 1}, at), worst) << epsilon << " " << count << " " << share;
      }
    }
  }
}

// Laws of ordered picks of an exponential mechanism without replacement.
class Picks {
 public:
  Picks(const std::vector<double>& scores, int64_t k) : scores_(scores) {
    pick(std::vector<bool>(scores.size()), k, 1);
  }
  const std::vector<double>& masses() const { return masses_; }

 private:
  void pick(std::vector<bool> taken, int64_t left, double mass) {
    if (left == 0) {
      masses_.push_back(mass);
      return;
    }
    double total = 0;
    for (size_t i = 0; i < scores_.size(); ++i) total += taken[i] ? 0 : std::exp(scores_[i]);
    for (size_t i = 0; i < scores_.size(); ++i) {
      if (taken[i]) continue;
      taken[i] = true;
      pick(taken, left - 1, mass * std::exp(scores_[i]) / total);
      taken[i] = false;
    }
  }
  const std::vector<double>& scores_;
  std::vector<double> masses_;
};

TEST(BoundedRange, NoTwoVectorsOfScoresTellMoreThanIsCertified) {
  std::mt19937_64 random(11);
  constexpr size_t kScores = 6;
  for (const double epsilon : {0.3, 1.5}) {
    for (const int64_t k : {1, 2, 3}) {
      const Steps steps{Step::bounded_range(epsilon), k};
      std::vector<double> at;
      std::vector<double> certified;
      for (const double share : {0.0, 0.25, 0.5, 0.75}) {
        at.push_back(share * epsilon * static_cast<double>(k));
        certified.push_back(proven_delta({&steps, 1}, at.back()));
      }
      double nearest = 0;
      for (int trial = 0; trial < 300; ++trial) {
        // Scores between 0 and H, in units of β: 2H = ε. Extremes tell most.
        std::vector<double> first(kScores);
        std::vector<double> second(kScores);
        for (size_t i = 0; i < kScores; ++i) {
          const bool high = random() % 2 == 0;
          const double wobble = trial % 3 == 0 ? static_cast<double>(random() % 1000) / 1000 : 1.0;
          first[i] = high ? wobble * epsilon / 2 : 0;
          second[i] = high ? 0 : epsilon / 2;
        }
        const Picks p(first, k);
        const Picks q(second, k);
        for (size_t a = 0; a < at.size(); ++a) {
          double delta = 0;
          for (size_t i = 0; i < p.masses().size(); ++i) {
            delta += std::max(0.0, p.masses()[i] - std::exp(at[a]) * q.masses()[i]);
          }
          EXPECT_LE(delta, certified[a] * (1 + 1e-12));
          nearest = std::max(nearest, delta / certified[a]);
        }
      }
      EXPECT_GT(nearest, 0.6) << "the bound is not near anything";
    }
  }
}

// k picks with Gumbel noise of scale β cost what k bounded ranges of 2H/β do; Laplace noise of the same scale costs the
// sum of them, and has the larger variance.
TEST(BoundedRange, NeverCostsMoreThanLaplaceNoiseOfTheSameScale) {
  for (const int64_t k : {1, 2, 5, 20, 100, 1000}) {
    for (const double sum : {0.01, 0.1, 1.0, 10.0, 100.0}) {
      const Steps steps{Step::bounded_range(sum / static_cast<double>(k)), k};
      for (const double delta : {1e-9, 1e-5, 1e-2}) {
        const double proven = proven_epsilon({&steps, 1}, delta);
        EXPECT_LE(proven, sum * (1 + 1e-9)) << k << " " << sum << " " << delta;
        if (k < 100 || sum < 1) continue;
        EXPECT_LE(proven, 0.5 * sum) << k << " " << sum << " " << delta;
      }
    }
  }
}

TEST(BoundedRange, IsLessThanItsPureStepAndTheSmallerOfTwoCertificates) {
  const std::vector<Steps> picks = {{Step::bounded_range(0.05), 100}};
  const std::vector<Steps> pure = {{Step::pure(0.05), 100}};
  const double found = proven_epsilon(picks, 1e-5);
  EXPECT_LT(found, 0.65 * proven_epsilon(pure, 1e-5));
  EXPECT_LE(found, pld_epsilon(picks, 1e-5));
  EXPECT_LE(found, RenyiCurve(picks).epsilon(1e-5, Orders::kReal, Conversion::kTight).value);
  // Never below what a pair of ends with s = ε/2 costs, which is near a Gaussian of μ = √100·0.05/2.
  EXPECT_GE(found, 0.95 * gaussian_epsilon(0.25, std::log(1e-5)));
}

TEST(BoundedRange, ComposesWithGaussians) {
  const std::vector<Steps> both = {{Step::bounded_range(0.05), 100}, {Step::gaussian(2), 1}};
  const std::vector<Steps> pure = {{Step::pure(0.05), 100}, {Step::gaussian(2), 1}};
  const double found = proven_epsilon(both, 1e-5);
  EXPECT_LT(found, proven_epsilon(pure, 1e-5));
  EXPECT_GT(found, proven_epsilon({both.begin() + 1, 1}, 1e-5));
  EXPECT_GE(found, 0.97 * gaussian_epsilon(std::sqrt(0.25 + 0.0625), std::log(1e-5)));
  const std::vector<Steps> with_allocated = {{Step::bounded_range(0.05), 100}, {Step::allocated(2, 8), 1}};
  EXPECT_LE(proven_epsilon(with_allocated, 1e-5), found * (1 + 1e-4));
  const std::vector<Steps> with_rest = {{Step::bounded_range(0.05), 100}, {Step::approximate(0.1, 1e-7), 1}};
  EXPECT_TRUE(std::isfinite(proven_epsilon(with_rest, 1e-5)));
}

TEST(BoundedRange, SampledStepsAreAmplified) {
  for (const Adjacency adjacency : {Adjacency::kAddRemove, Adjacency::kReplace}) {
    const Steps sampled{Step::bounded_range(0.5, 0.05, adjacency), 20};
    const Steps whole{Step::bounded_range(0.5), 20};
    EXPECT_LT(proven_epsilon({&sampled, 1}, 1e-5), 0.3 * proven_epsilon({&whole, 1}, 1e-5));
  }
}

TEST(BoundedRange, WhatIsNotCoveredIsRefusedWithAReason) {
  for (const double epsilon :
       {0.0, -1.0, std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_USER_ERROR(make_accountant(Method::kPld)->compose(Step::bounded_range(epsilon)), "epsilon");
  }
  const auto exact = make_accountant(Method::kExact);
  exact->compose(Step::bounded_range(1), 2);
  EXPECT_USER_ERROR(exact->epsilon(1e-5), "use pld");
  const auto zcdp = make_accountant(Method::kZcdp);
  zcdp->compose(Step::bounded_range(0.2), 8);
  EXPECT_NEAR(zcdp->epsilon(1e-5), 0.04 + 2 * std::sqrt(0.04 * -std::log(1e-5)), 1e-9);
  const auto basic = make_accountant(Method::kBasic);
  basic->compose(Step::bounded_range(0.2), 8);
  EXPECT_NEAR(basic->epsilon(1e-5), 1.6, 1e-9);
}

}  // namespace
}  // namespace sotto::privacy
