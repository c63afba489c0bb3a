// Known answers and coverage of the audits' statistics.
#include "audit/bounds.h"

#include "audit/one_run.h"
#include "base/random.h"
#include "privacy/accounting/gaussian.h"
#include "privacy/noise/gaussian.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace sotto::audit {
namespace {

struct Published {
  int64_t events, trials;
  double low, high;
};

// Newcombe, Statistics in Medicine 17 (1998), table I: the Clopper–Pearson intervals at 95 %.
TEST(ClopperPearson, PublishedIntervals) {
  for (const auto& [events, trials, low, high] :
       {Published{81, 263, 0.2527, 0.3676}, {15, 148, 0.0578, 0.1617}, {0, 20, 0.0, 0.1684}, {1, 29, 0.0009, 0.1776}}) {
    EXPECT_NEAR(lower_limit(events, trials, 0.025), low, 5e-5);
    EXPECT_NEAR(upper_limit(events, trials, 0.025), high, 5e-5);
  }
  EXPECT_EQ(upper_limit(20, 20, 0.025), 1.0);
  EXPECT_NEAR(lower_limit(20, 20, 0.025), 1 - 0.1684, 5e-5);
  EXPECT_NEAR(upper_limit(0, 100000, 0.05), 1 - std::pow(0.05, 1e-5), 1e-12);
}

Sample normals(double mu, int64_t trials, uint64_t seed) {
  Sample sample;
  RandomStream stream(seed, "audit-test");
  for (int64_t i = 0; i < trials; ++i) {
    sample.without.push_back(stream.normal());
    sample.with.push_back(stream.normal() + mu);
  }
  return sample;
}

TEST(LowerBounds, WorldsThatAreTheSameGiveNothing) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const Bounds bounds = lower_bounds(normals(0, 4000, seed), 1e-5, 0.05);
    EXPECT_LT(bounds.epsilon, 0.02) << seed;
    EXPECT_LT(bounds.mu, 0.02) << seed;
  }
}

TEST(LowerBounds, WorldsThatNeverMeetSaturateAtTheNumberOfTrials) {
  Sample sample;
  for (int i = 0; i < 4000; ++i) {
    sample.without.push_back(0);
    sample.with.push_back(1);
  }
  const double limit = upper_limit(0, 3000, 0.05 / 4);
  EXPECT_NEAR(lower_bounds(sample, 1e-3, 0.05).epsilon, std::log((1 - limit - 1e-3) / limit), 1e-9);
  std::swap(sample.without, sample.with);
  EXPECT_NEAR(lower_bounds(sample, 1e-3, 0.05).epsilon, std::log((1 - limit - 1e-3) / limit), 1e-9);
  EXPECT_FALSE(lower_bounds(sample, 1e-3, 0.05).fitted_mu);
}

TEST(LowerBounds, InfiniteNumbersAreNumbersToo) {
  Sample sample = normals(0, 100, 1);
  sample.with.assign(100, std::numeric_limits<double>::infinity());
  EXPECT_GT(lower_bounds(sample, 1e-5, 0.05).epsilon, 1);
}

TEST(LowerBounds, ALeakOfProbabilityDeltaIsAllowed) {
  // With probability δ everything is given away: nothing else is. ε = 0 is the truth.
  Sample sample;
  RandomStream stream(3, "audit-test");
  for (int i = 0; i < 20000; ++i) {
    sample.without.push_back(stream.uniform());
    sample.with.push_back(stream.bernoulli(0.01) ? 2.0 : stream.uniform());
  }
  EXPECT_LT(lower_bounds(sample, 0.02, 0.05).epsilon, 0.05);
  EXPECT_GT(lower_bounds(sample, 1e-5, 0.05).epsilon, 2);
}

TEST(LowerBounds, TheFitFindsTheGaussian) {
  const Bounds bounds = lower_bounds(normals(1.5, 20000, 5), 1e-5, 0.05);
  ASSERT_TRUE(bounds.fitted_mu);
  EXPECT_NEAR(*bounds.fitted_mu, 1.5, 0.05);
  EXPECT_LT(bounds.fit_error, 0.05);
  EXPECT_LT(bounds.mu, 1.5);
  EXPECT_GT(bounds.mu, 1.35);
}

// The noise is the mechanism's own; every coordinate is a trial.
Sample released(double mu, int64_t trials, uint64_t seed) {
  const auto world = [&](double value, std::string_view purpose) {
    std::vector<double> values(static_cast<size_t>(trials), value);
    privacy::NoiseSource source = privacy::NoiseSource::replay(seed, purpose, 0, 0);
    privacy::add_gaussian(values, privacy::gaussian_grid(1 / mu, 1.0, 1), source);
    return values;
  };
  return {world(0, "without"), world(1, "with")};
}

class GaussianCurve : public ::testing::TestWithParam<double> {};

TEST_P(GaussianCurve, LandsBetweenSixtyPercentAndTheTruth) {
  const double epsilon = GetParam(), delta = 1e-5;
  const double mu = privacy::gaussian_mu(epsilon, delta);
  constexpr int seeds = 40;
  int inside = 0, above = 0, counted_above = 0;
  for (int seed = 1; seed <= seeds; ++seed) {
    const Bounds bounds = lower_bounds(released(mu, 100000, static_cast<uint64_t>(seed)), delta, 0.05);
    const double audited = bounds.epsilon_by_curve(delta);
    inside += audited >= 0.6 * epsilon && audited <= epsilon ? 1 : 0;
    above += audited > epsilon ? 1 : 0;
    counted_above += bounds.epsilon > epsilon ? 1 : 0;
  }
  EXPECT_GE(inside, 38);
  EXPECT_LE(above, 2);
  EXPECT_LE(counted_above, 2);
}

INSTANTIATE_TEST_SUITE_P(Budgets, GaussianCurve, ::testing::Values(0.5, 1.0, 3.0, 10.0));

TEST(OneRun, AllGuessesRight) {
  // p = q^100 = 0.05
  const double q = std::pow(0.05, 0.01);
  EXPECT_NEAR(one_run_epsilon({100, 100, 100}, 0, 0.05), std::log(q / (1 - q)), 1e-5);
  EXPECT_EQ(one_run_epsilon({100, 100, 50}, 0, 0.05), 0);
  EXPECT_EQ(one_run_epsilon({100, 0, 0}, 0, 0.05), 0);
}

TEST(OneRun, TheSumOverDeltaIsTheBinomials) {
  // 2 of 3 right: P(1) = 3q(1-q)², P(0) = (1-q)³; q = ½: 3/8 and (3/8 + 1/8)/2.
  EXPECT_NEAR(one_run_p_value({3, 3, 2}, 0, 0.01), 0.5 + 2 * 3 * 0.01 * 0.375, 1e-12);
  // Far beyond what luck gives, where single terms underflow.
  EXPECT_NEAR(one_run_p_value({4000, 4000, 4000}, 0, 1e-6), 2 * 4000 * 1e-6 / 2032, 2e-4 * 2 * 4000 * 1e-6);
}

TEST(OneRun, DeltaCostsSomething) {
  const double pure = one_run_epsilon({1000, 400, 380}, 0, 0.05), with = one_run_epsilon({1000, 400, 380}, 1e-5, 0.05);
  EXPECT_LT(with, pure);
  EXPECT_GT(with, 0.8 * pure);
  EXPECT_EQ(one_run_p_value({1000, 400, 380}, 1.0, 0.5), 1.0);
}

TEST(OneRun, RandomisedResponseIsFoundOut) {
  constexpr double epsilon = 1.0;
  int above = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    RandomStream stream(seed, "one-run");
    std::vector<double> scores;
    std::vector<bool> in;
    for (int i = 0; i < 4000; ++i) {
      in.push_back(stream.bernoulli(0.5));
      const bool truth = stream.bernoulli(1 / (1 + std::exp(-epsilon)));
      scores.push_back(truth == in.back() ? 1 + 1e-6 * i : 1e-6 * i);
    }
    const double bound = one_run_bound(scores, in, 1e-6, 0.05).epsilon;
    above += bound > epsilon ? 1 : 0;
    EXPECT_GT(bound, 0.6) << seed;
  }
  EXPECT_LE(above, 3);
}

TEST(OneRun, TwoChangesAreWorthHalf) {
  const Guesses guesses{1000, 400, 380};
  EXPECT_NEAR(one_run_epsilon(guesses, 0, 0.05, Coin::kTwoChanges), one_run_epsilon(guesses, 0, 0.05) / 2, 1e-5);
  EXPECT_LT(one_run_epsilon(guesses, 1e-5, 0.05, Coin::kTwoChanges), one_run_epsilon(guesses, 1e-5, 0.05) / 2);
}

TEST(OneRun, GuessesGoByScore) {
  const Guesses guesses = guess_by_score({0.1, 0.9, 0.5, 0.8, 0.2}, {false, true, true, false, true}, 2);
  EXPECT_EQ(guesses.canaries, 5);
  EXPECT_EQ(guesses.made, 4);
  EXPECT_EQ(guesses.right, 2);  // 0.1 out, 0.9 in; 0.2 and 0.8 are wrong
}

}  // namespace
}  // namespace sotto::audit
