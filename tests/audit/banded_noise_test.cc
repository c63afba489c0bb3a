// Can a client's part in a stream of sums be told from what is released, by more than its rows say?
#include "audit/two_worlds.h"
#include "privacy/accounting/gaussian.h"
#include "privacy/calibration.h"
#include "privacy/ledger.h"
#include "privacy/mechanisms/banded.h"

#include <ATen/ATen.h>

#include <gtest/gtest.h>

#include <cmath>
#include <memory>

namespace sotto::audit {
namespace {

using namespace privacy;

constexpr double kDelta = 1e-5, kEpsilon = 2;
constexpr int64_t kRounds = 6, kBand = 3;
constexpr Neighbours kClients{Adjacency::kAddRemove, Unit::kClient};

// Our client is there, or not, in rounds 1, 1 + every, …; it always sends the same, which is the worst it can do where
// its rounds share noise. The attacker knows the strategy C and looks at C times what was released, where noise is
// independent.
Finding distinguish(int64_t every, int64_t participations, double* proven) {
  const double multiplier = noise_multiplier_for(kEpsilon, kDelta, participations, 1.0, Adjacency::kAddRemove);
  const BandedTerms terms{.rounds = kRounds, .separation = kBand, .band = kBand};
  const at::Tensor strategy = BandedStrategy(kRounds, kBand).matrix();
  const Group group{"x", 1, 1, sum_sensitivity(1.0, Adjacency::kAddRemove)};
  const MakeDraw make = [=]() -> Draw {
    auto ledger = std::make_shared<Ledger>();
    return [=](World world, uint64_t seed) {
      BandedGaussian banded(multiplier, group, terms);
      const Channel channel = banded.channel("sum", Observer::kClients, kClients);
      at::Tensor seen = at::empty({kRounds}, at::kDouble);
      for (int64_t round = 1; round <= kRounds; ++round) {
        const bool is_there = world == World::kWith && (round - 1) % every == 0;
        // A client that comes too early does so under another name, or the mechanism would stop.
        const std::vector<int64_t> cohort = {round};
        const auto release = banded.release(
            channel, cohort, {.ledger = *ledger, .round = round, .client = kEveryone, .seed = seed}, [&] {
              return clip_whole(Contribution({{"x", at::full({1}, is_there ? 9.0 : 0.0)}}), {{"x", 1, 1.0}}, kClients);
            });
        seen[round - 1] = release->values().front().value[0].item<double>();
      }
      return NamedTensors{{"mixed", at::mv(strategy, seen)}};
    };
  };
  Tally tally;
  tally.add(BandedGaussian(multiplier, group, terms).channel("sum", Observer::kClients, kClients).terms(),
            participations);
  *proven = tally.proven(kDelta);
  return tell_apart(make, {.trials = 6'000, .pilots = 100, .delta = kDelta, .seed = 5, .threads = 2});
}

TEST(BandedNoise, AnAttackerWhoKnowsTheStrategyFindsNoMoreThanTheRowsSay) {
  double proven = 0;
  const Finding found = distinguish(kBand, kRounds / kBand, &proven);
  EXPECT_LE(proven, kEpsilon);
  EXPECT_GT(proven, 0.99 * kEpsilon);
  EXPECT_LE(found.bounds.epsilon_by_curve(kDelta), proven);
  EXPECT_LE(found.bounds.epsilon, proven);
  EXPECT_GT(found.bounds.epsilon_by_curve(kDelta), 0.6 * proven) << "a blunt attacker shows nothing";
  RecordProperty("found", fmt::format("{:.3f} of {:.3f}", found.bounds.epsilon_by_curve(kDelta), proven));
}

// The same rows would be a lie for a client that comes in every round.
TEST(BandedNoise, ParticipationsNearerThanTheBandAreFoundOut) {
  double proven = 0;
  const Finding found = distinguish(1, kRounds / kBand, &proven);
  EXPECT_GT(found.bounds.epsilon_by_curve(kDelta), proven);
  RecordProperty("found", fmt::format("{:.3f} of {:.3f}", found.bounds.epsilon_by_curve(kDelta), proven));
}

}  // namespace
}  // namespace sotto::audit
