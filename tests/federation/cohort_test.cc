#include "federation/cohort.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

namespace sotto::federation {
namespace {

config::RunSpec spec(int64_t clients, int64_t cohort, methods::CohortSampling sampling) {
  config::RunSpec value;
  value.data.clients = clients;
  value.federation.cohort = cohort;
  value.federation.sampling = sampling;
  return value;
}

TEST(Cohort, FixedHasExactlySoManyDistinctClients) {
  std::set<int64_t> seen;
  for (int64_t round = 1; round <= 200; ++round) {
    const auto cohort = sample_cohort(spec(20, 5, methods::CohortSampling::kFixed), round);
    EXPECT_EQ(std::set<int64_t>(cohort.begin(), cohort.end()).size(), 5U);
    EXPECT_TRUE(std::is_sorted(cohort.begin(), cohort.end()));
    seen.insert(cohort.begin(), cohort.end());
  }
  EXPECT_EQ(seen.size(), 20U);
}

TEST(Cohort, ZeroMeansEveryone) {
  EXPECT_EQ(sample_cohort(spec(7, 0, methods::CohortSampling::kFixed), 1).size(), 7U);
}

TEST(Cohort, PoissonTakesEachClientWithTheSameProbability) {
  constexpr int kRounds = 4000;
  std::vector<int> count(10, 0);
  for (int64_t round = 1; round <= kRounds; ++round) {
    for (const int64_t client : sample_cohort(spec(10, 3, methods::CohortSampling::kPoisson), round))
      ++count[static_cast<size_t>(client)];
  }
  const double sigma = std::sqrt(kRounds * 0.3 * 0.7);
  for (const int c : count) EXPECT_NEAR(c, kRounds * 0.3, 4.5 * sigma);
}

TEST(Cohort, DependsOnSeedAndRoundAlone) {
  const auto base = spec(1000, 10, methods::CohortSampling::kFixed);
  EXPECT_EQ(sample_cohort(base, 3), sample_cohort(base, 3));
  EXPECT_NE(sample_cohort(base, 3), sample_cohort(base, 4));
  auto other = base;
  other.seed = 2;
  EXPECT_NE(sample_cohort(base, 3), sample_cohort(other, 3));
}

config::RunSpec amplified(privacy::Generator generator) {
  config::RunSpec value = spec(1000, 100, methods::CohortSampling::kPoisson);
  value.rounds = 7;
  value.privacy.emplace();
  value.privacy->unit = privacy::Unit::kClient;
  value.privacy->generator = generator;
  return value;
}

TEST(Cohort, WhatAmplifiesCannotBeFoundFromTheConfig) {
  const config::RunSpec run = amplified(privacy::Generator::kSecure);
  const CohortSchedule one(run), other(run);
  EXPECT_NE(one.cohort(1), sample_cohort(run, 1));
  EXPECT_NE(one.cohort(1), other.cohort(1));
  EXPECT_NE(one.cohort(1), one.cohort(2));
  EXPECT_EQ(count_participations(run), std::vector<int32_t>(1000, 7)) << "who takes part when is no public fact";
}

// With secure noise a round that is run again is another release: of the same cohort it would cost more than two.
TEST(Cohort, ARunThatIsResumedDrawsNewSecretCohorts) {
  const config::RunSpec run = amplified(privacy::Generator::kSecure);
  const CohortSchedule begun(run), resumed(run);
  EXPECT_EQ(begun.cohort(3), begun.cohort(3));
  EXPECT_NE(begun.cohort(3), resumed.cohort(3));
}

TEST(Cohort, SecretOnesTakeEachClientWithTheSameProbability) {
  constexpr int kRounds = 4000;
  config::RunSpec run = amplified(privacy::Generator::kSecure);
  run.data.clients = 10;
  run.federation.cohort = 3;
  const CohortSchedule schedule(run);
  std::vector<int> count(10, 0);
  for (int64_t round = 1; round <= kRounds; ++round) {
    for (const int64_t client : schedule.cohort(round)) ++count[static_cast<size_t>(client)];
  }
  for (const int c : count) EXPECT_NEAR(c, kRounds * 0.3, 5 * std::sqrt(kRounds * 0.3 * 0.7));
}

TEST(Cohort, ReplayedOnesFollowFromTheSeed) {
  const config::RunSpec run = amplified(privacy::Generator::kReplay);
  const CohortSchedule schedule(run);
  EXPECT_EQ(schedule.cohort(3), sample_cohort(run, 3));
}

}  // namespace
}  // namespace sotto::federation
