#include "federation/cohort.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
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

TEST(Cohort, CyclicOnesComeBackWhenAllOthersHaveTakenPart) {
  for (const auto& [clients, cohort] : {std::pair{20, 5}, {20, 7}, {9, 1}, {10, 4}}) {
    auto settings = spec(clients, cohort, methods::CohortSampling::kCyclic);
    settings.rounds = 50;
    const int64_t separation = methods::least_separation(settings);
    EXPECT_EQ(separation, clients / cohort);
    std::vector<int64_t> last(static_cast<size_t>(clients), -1000);
    int64_t nearest = 1000;
    for (int64_t round = 1; round <= settings.rounds; ++round) {
      const auto chosen = sample_cohort(settings, round);
      EXPECT_EQ(std::set<int64_t>(chosen.begin(), chosen.end()).size(), static_cast<size_t>(cohort));
      EXPECT_TRUE(std::is_sorted(chosen.begin(), chosen.end()));
      EXPECT_EQ(chosen, draw_cohort(settings, {}, round)) << "they are public between machines, too";
      for (const int64_t client : chosen) {
        nearest = std::min(nearest, round - last[static_cast<size_t>(client)]);
        last[static_cast<size_t>(client)] = round;
      }
    }
    EXPECT_EQ(nearest, separation) << clients << " " << cohort;
    const auto counts = count_participations(settings);
    EXPECT_LE(*std::max_element(counts.begin(), counts.end()), (50 + separation - 1) / separation);
    settings.seed = 2;
    const auto other = spec(clients, cohort, methods::CohortSampling::kCyclic);
    EXPECT_TRUE(cohort == 1 || sample_cohort(settings, 1) != sample_cohort(other, 1))
        << "the order follows from the seed";
  }
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

TEST(Cohort, SecretOnesOfFixedSizeAreAllAsLikely) {
  constexpr int kRounds = 6000;
  config::RunSpec run = amplified(privacy::Generator::kSecure);
  run.data.clients = 5;
  run.federation.cohort = 2;
  run.federation.sampling = methods::CohortSampling::kSecret;
  const CohortSchedule schedule(run);
  std::map<std::vector<int64_t>, int> count;
  for (int64_t round = 1; round <= kRounds; ++round) ++count[schedule.cohort(round)];
  EXPECT_EQ(count.size(), 10U);
  for (const auto& [cohort, times] : count) {
    EXPECT_EQ(cohort.size(), 2U);
    EXPECT_NEAR(times, kRounds / 10.0, 5 * std::sqrt(kRounds * 0.09));
  }
}

TEST(Cohort, ReplayedOnesFollowFromTheSeed) {
  const config::RunSpec run = amplified(privacy::Generator::kReplay);
  const CohortSchedule schedule(run);
  EXPECT_EQ(schedule.cohort(3), sample_cohort(run, 3));
}

}  // namespace
}  // namespace sotto::federation
