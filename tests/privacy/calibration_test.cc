#include "privacy/calibration.h"

#include "base/error.h"
#include "privacy/accounting/proven.h"

#include <gtest/gtest.h>

#include <cmath>
#include <thread>
#include <vector>

namespace sotto::privacy {
namespace {

constexpr double kDelta = 1e-5;

double spent(double rate, int64_t steps, double multiplier, Adjacency adjacency) {
  const Steps all{Step::gaussian(multiplier, rate, adjacency), steps};
  return proven_epsilon({&all, 1}, 0.999 * kDelta);
}

TEST(SamplingRate, StaysWithinTheBudgetAndCouldNotBeALittleHigher) {
  for (const auto adjacency : {Adjacency::kAddRemove, Adjacency::kReplace}) {
    for (const double epsilon : {0.05, 1.0, 6.0}) {
      for (const int64_t steps : {1, 100, 2500}) {
        const double rate = sampling_rate_for(epsilon, kDelta, steps, 1.1, adjacency);
        ASSERT_GT(rate, 0.0);
        ASSERT_LE(rate, 1.0);
        EXPECT_LE(spent(rate, steps, 1.1, adjacency), epsilon);
        if (rate == 1) continue;
        EXPECT_GT(spent(std::min(1.0, rate * 1.002), steps, 1.1, adjacency), epsilon);
      }
    }
  }
}

TEST(NoiseMultiplier, FallsWithTheBatchesOfRandomAllocation) {
  const auto multiplier = [](int64_t batches) {
    return noise_multiplier_for(1.0, kDelta, 10, 1.0, Adjacency::kZeroOut, batches);
  };
  EXPECT_EQ(multiplier(1), noise_multiplier_for(1.0, kDelta, 10, 1.0, Adjacency::kZeroOut));
  EXPECT_GT(multiplier(1), 1.3 * multiplier(2));
  EXPECT_GT(multiplier(1), 3 * multiplier(12));
  EXPECT_EQ(multiplier(12), multiplier(12));
  const double plain = noise_multiplier_for(1.0, kDelta, 10, 1.0, Adjacency::kReplace);
  EXPECT_LT(noise_multiplier_for(1.0, kDelta, 10, 1.0, Adjacency::kReplace, 12), plain / 3);
  EXPECT_THROW(noise_multiplier_for(1.0, kDelta, 10, 0.5, Adjacency::kZeroOut, 12), UserError);
  EXPECT_THROW(noise_multiplier_for(1.0, kDelta, 10, 1.0, Adjacency::kZeroOut, 0), UserError);
}

TEST(SamplingRate, IsTheInverseOfTheNoiseMultiplier) {
  for (const double rate : {0.01, 0.2}) {
    const double multiplier = noise_multiplier_for(2.0, kDelta, 300, rate, Adjacency::kAddRemove);
    EXPECT_NEAR(sampling_rate_for(2.0, kDelta, 300, multiplier, Adjacency::kAddRemove) / rate, 1.0, 2e-3);
  }
}

TEST(SamplingRate, GrowsWithTheBudgetAndTheNoiseAndFallsWithTheSteps) {
  const auto rate = [](double epsilon, int64_t steps, double multiplier) {
    return sampling_rate_for(epsilon, kDelta, steps, multiplier, Adjacency::kAddRemove);
  };
  EXPECT_LT(rate(0.1, 200, 1.0), rate(0.5, 200, 1.0));
  EXPECT_LT(rate(0.5, 200, 1.0), rate(2.0, 200, 1.0));
  EXPECT_LT(rate(0.5, 200, 1.0), rate(0.5, 200, 2.0));
  EXPECT_GT(rate(0.5, 200, 1.0), rate(0.5, 800, 1.0));
}

TEST(SamplingRate, IsOneIfTheBudgetPaysForEveryStep) {
  const double multiplier = noise_multiplier_for(1.0, kDelta, 10, 1.0, Adjacency::kReplace);
  EXPECT_EQ(sampling_rate_for(1.0, kDelta, 10, 1.01 * multiplier, Adjacency::kReplace), 1.0);
  EXPECT_LT(sampling_rate_for(1.0, kDelta, 10, 0.99 * multiplier, Adjacency::kReplace), 1.0);
}

// With almost no noise a record may be seen as seldom as δ allows, which is not never.
TEST(SamplingRate, IsPositiveHoweverLittleNoiseThereIs) {
  const double rate = sampling_rate_for(0.1, kDelta, 1, 0.1, Adjacency::kAddRemove);
  EXPECT_GT(rate, 0.998 * kDelta);
  EXPECT_LT(rate, 1.2 * kDelta);
  EXPECT_LE(spent(rate, 1, 0.1, Adjacency::kAddRemove), 0.1);
}

TEST(SamplingRate, RefusesWhatIsNotABudget) {
  for (const double bad : {0.0, -1.0, std::nan(""), HUGE_VAL}) {
    EXPECT_THROW(sampling_rate_for(bad, kDelta, 10, 1.0, Adjacency::kAddRemove), UserError);
    EXPECT_THROW(sampling_rate_for(1.0, kDelta, 10, bad, Adjacency::kAddRemove), UserError);
    EXPECT_THROW(sampling_rate_for(1.0, bad, 10, 1.0, Adjacency::kAddRemove), UserError);
  }
  EXPECT_THROW(sampling_rate_for(1.0, kDelta, 0, 1.0, Adjacency::kAddRemove), UserError);
}

// A tenth of the budget is kept from the values; what picks get of it is more than their share of a pure ε.
TEST(PickEpsilon, FillsTheBudgetAndIsNeverLessThanLaplaceNoiseWouldHave) {
  for (const double epsilon : {0.1, 1.0, 8.0}) {
    for (const int64_t releases : {1, 20}) {
      for (const int64_t k : {1, 12, 103}) {
        const int64_t picks = k * releases;
        const double z = noise_multiplier_for(0.9 * epsilon, kDelta, releases, 1.0, Adjacency::kReplace);
        const double pick = pick_epsilon_for(epsilon, kDelta, picks, z, releases);
        const std::vector<Steps> all = {{Step::gaussian(z), releases}, {Step::bounded_range(pick), picks}};
        EXPECT_LE(proven_epsilon(all, kDelta), epsilon);
        EXPECT_GT(proven_epsilon(all, kDelta), 0.99 * epsilon);
        EXPECT_GE(pick, 0.1 * epsilon / static_cast<double>(picks)) << epsilon << " " << releases << " " << k;
      }
    }
  }
}

TEST(PickEpsilon, RefusesWhatIsNotABudgetAndWhatIsSpent) {
  for (const double bad : {0.0, -1.0, std::nan(""), HUGE_VAL}) {
    EXPECT_THROW(pick_epsilon_for(bad, kDelta, 10, 1.0, 1), UserError);
    EXPECT_THROW(pick_epsilon_for(1.0, kDelta, 10, bad, 1), UserError);
    EXPECT_THROW(pick_epsilon_for(1.0, bad, 10, 1.0, 1), UserError);
  }
  EXPECT_THROW(pick_epsilon_for(1.0, kDelta, 0, 10.0, 1), UserError);
  EXPECT_THROW(pick_epsilon_for(1.0, kDelta, 10, 1.0, 1), UserError) << "one Gaussian of 1 costs more";
}

TEST(SamplingRate, ManyThreadsGetOneAnswer) {
  std::vector<double> found(8);
  std::vector<std::thread> threads;
  for (double& value : found) {
    threads.emplace_back([&value] { value = sampling_rate_for(0.7, kDelta, 123, 1.3, Adjacency::kAddRemove); });
  }
  for (auto& thread : threads) thread.join();
  for (const double value : found) EXPECT_EQ(value, found.front());
}

TEST(Calibration, ASecretCohortNeedsNoMoreNoiseThanAPublicOne) {
  for (const Adjacency adjacency : {Adjacency::kZeroOut, Adjacency::kReplace}) {
    const double in_public = noise_multiplier_for(2, 1e-5, 20, 1, adjacency);
    EXPECT_EQ(cohort_noise_multiplier_for(2, 1e-5, 20, 1, adjacency), in_public);
    EXPECT_LE(cohort_noise_multiplier_for(2, 1e-5, 20, 0.9, adjacency), in_public);
    EXPECT_LT(cohort_noise_multiplier_for(2, 1e-5, 20, 0.02, adjacency), 0.5 * in_public);
  }
}

}  // namespace
}  // namespace sotto::privacy
