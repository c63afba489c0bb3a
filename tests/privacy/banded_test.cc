#include "privacy/mechanisms/banded.h"

#include "base/error.h"
#include "privacy/access.h"
#include "privacy/accounting/normal.h"
#include "privacy/ledger.h"

#include <ATen/ATen.h>
#include <torch/autograd.h>
#include <torch/optim/lbfgs.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

namespace sotto::privacy {
namespace {

constexpr Neighbours kClients{Adjacency::kAddRemove, Unit::kClient};

// Root mean square, over rounds, of the noise in a running sum.
at::Tensor running_sum_error(const at::Tensor& strategy) {
  const at::Tensor sums = at::ones_like(strategy).tril();
  const at::Tensor spread = at::linalg_solve_triangular(strategy, sums, false, false);
  return (spread.square().sum() / strategy.size(0)).sqrt();
}

// The largest ‖C u‖² over all sets of rounds that are `separation` apart or more, and all u = ±1 on them.
double brute_force_sensitivity(const at::Tensor& strategy, int64_t separation) {
  const int64_t rounds = strategy.size(0);
  double largest = 0;
  std::vector<int64_t> chosen;
  const std::function<void(int64_t)> extend = [&](int64_t next) {
    for (uint64_t signs = 0; signs < uint64_t{1} << chosen.size(); ++signs) {
      at::Tensor u = at::zeros({rounds}, at::kDouble);
      for (size_t i = 0; i < chosen.size(); ++i) u[chosen[i]] = (signs >> i & 1) != 0 ? -1.0 : 1.0;
      largest = std::max(largest, at::mv(strategy, u).square().sum().item<double>());
    }
    for (int64_t round = next; round < rounds; ++round) {
      chosen.push_back(round);
      extend(round + separation);
      chosen.pop_back();
    }
  };
  extend(0);
  return largest;
}

TEST(BandedStrategy, HasColumnsOfNormOneWithinItsBand) {
  for (const auto& [rounds, band] : {std::pair{1, 1}, {7, 1}, {7, 3}, {12, 12}}) {
    const BandedStrategy strategy(rounds, band);
    const at::Tensor c = strategy.matrix();
    EXPECT_TRUE(at::allclose(c.square().sum(0), at::ones({rounds}, at::kDouble), 1e-14));
    EXPECT_EQ(c.triu(1).abs().sum().item<double>(), 0);
    EXPECT_EQ(c.tril(-band).abs().sum().item<double>(), 0);
    EXPECT_GT(c.diagonal().min().item<double>(), 0);
  }
  EXPECT_TRUE(at::equal(BandedStrategy(5, 1).matrix(), at::eye(5, at::kDouble))) << "a band of 1 is independent noise";
}

TEST(BandedStrategy, IsTheSquareRootOfRunningSumsBeforeItsColumnsAreScaled) {
  const at::Tensor c = BandedStrategy(9, 9).matrix();
  const at::Tensor root = c / c.diagonal();
  EXPECT_TRUE(at::allclose(at::mm(root, root), at::ones({9, 9}, at::kDouble).tril(), 1e-12));
}

TEST(BandedStrategy, MovesByTheRootOfParticipationsAndNoMore) {
  for (int64_t rounds = 1; rounds <= 8; ++rounds) {
    for (int64_t separation = 1; separation <= rounds; ++separation) {
      const auto participations = static_cast<double>((rounds + separation - 1) / separation);
      for (int64_t band = 1; band <= separation; ++band) {
        const double moved = brute_force_sensitivity(BandedStrategy(rounds, band).matrix(), separation);
        EXPECT_NEAR(moved, participations, 1e-12) << rounds << " " << separation << " " << band;
      }
    }
  }
  EXPECT_GT(brute_force_sensitivity(BandedStrategy(8, 4).matrix(), 2), 4 * 1.2)
      << "where participations are nearer than the band, it is more";
}

TEST(BandedStrategy, KnowsTheNoiseInTheSumOfAllRounds) {
  for (const auto& [rounds, band] : {std::pair{1, 1}, {6, 1}, {10, 4}, {40, 40}}) {
    const BandedStrategy strategy(rounds, band);
    const at::Tensor row = at::linalg_solve_triangular(strategy.matrix(), at::ones({1, rounds}, at::kDouble), false,
                                                       /*left=*/false);
    EXPECT_NEAR(strategy.noise_in_total(), row.norm().item<double>(), 1e-12 * strategy.noise_in_total());
  }
}

TEST(BandedStrategy, MoreDiagonalsMeanLessNoise) {
  double last = running_sum_error(BandedStrategy(64, 1).matrix()).item<double>();
  double total = BandedStrategy(64, 1).noise_in_total();
  EXPECT_DOUBLE_EQ(total, 8.0);
  for (const int64_t band : {2, 3, 5, 8, 16, 33, 64}) {
    const BandedStrategy strategy(64, band);
    const double error = running_sum_error(strategy.matrix()).item<double>();
    EXPECT_LT(error, last);
    EXPECT_LT(strategy.noise_in_total(), total);
    last = error;
    total = strategy.noise_in_total();
  }
  EXPECT_LT(total, 8.0 / 3.5);
}

// The best of all matrices of the band with columns of norm 1, by L-BFGS from independent noise.
double least_error(int64_t rounds, int64_t band) {
  const at::Tensor mask = at::ones({rounds, rounds}, at::kDouble).tril().triu(1 - band);
  at::Tensor free = at::eye(rounds, at::kDouble).requires_grad_();
  torch::optim::LBFGS optimizer({free}, torch::optim::LBFGSOptions(1).max_iter(400).line_search_fn("strong_wolfe"));
  const auto error = [&] {
    const at::Tensor c = free * mask;
    return running_sum_error(c / c.norm(2, {0}, true));
  };
  optimizer.step([&] {
    const at::AutoGradMode with_grad(true);
    optimizer.zero_grad();
    const at::Tensor loss = error();
    loss.backward();
    return loss;
  });
  const at::NoGradGuard no_grad;
  return error().item<double>();
}

TEST(BandedStrategy, IsNearTheBestOfItsBand) {
  for (const auto& [rounds, band] : {std::pair{8, 2}, {16, 4}, {24, 12}, {32, 32}}) {
    const double least = least_error(rounds, band);
    const double own = running_sum_error(BandedStrategy(rounds, band).matrix()).item<double>();
    RecordProperty(fmt::format("over_the_best_{}_{}", rounds, band), fmt::format("{:.4f}", own / least));
    EXPECT_GE(own, least * (1 - 1e-9)) << "the optimum was not found";
    EXPECT_LT(own, least * 1.02) << rounds << " rounds, band " << band;
  }
}

// Sums that a trusted server releases, `clients` in turn.
class Stream {
 public:
  Stream(double multiplier, int64_t coordinates, const BandedTerms& terms, Generator generator = Generator::kReplay)
      : group_{"x", 1, coordinates, 1.0},
        terms_(terms),
        generator_(generator),
        banded_(multiplier, group_, terms),
        channel_(banded_.channel("sum", Observer::kClients, kClients)) {}

  std::vector<int64_t> cohort(int64_t round) const { return {(round - 1) % terms_.separation}; }

  at::Tensor release(Ledger& ledger, int64_t round, const at::Tensor& sum, uint64_t seed = 1) {
    const std::vector<int64_t> clients = cohort(round);
    return release(ledger, round, sum, seed, clients);
  }
  at::Tensor release(Ledger& ledger, int64_t round, const at::Tensor& sum, uint64_t seed,
                     const std::vector<int64_t>& clients) {
    const auto made = banded_.release(
        channel_, clients,
        {.ledger = ledger, .round = round, .client = kEveryone, .generator = generator_, .seed = seed}, [&] {
          return Access::bounded({{"x", sum}}, {group_}, Norm::kL2);
        });
    return made ? made->values().front().value : at::Tensor();
  }

  BandedGaussian& banded() { return banded_; }
  const Channel& channel() const { return channel_; }

 private:
  Group group_;
  BandedTerms terms_;
  Generator generator_;
  BandedGaussian banded_;
  Channel channel_;
};

// Noise of all rounds, [rounds, coordinates], in units of what the Gaussian of a round has.
at::Tensor noise_of(const BandedTerms& terms, int64_t coordinates) {
  Stream stream(2.0, coordinates, terms);
  Ledger ledger;
  std::vector<at::Tensor> rows;
  for (int64_t round = 1; round <= terms.rounds; ++round) {
    const at::Tensor sum = at::full({coordinates}, 100.0 * static_cast<double>(round), at::kDouble);
    rows.push_back(stream.release(ledger, round, sum).to(at::kDouble) - sum);
  }
  const Event& event = stream.channel().terms();
  return at::stack(rows) / event.noise_scale;
}

TEST(BandedGaussian, NoiseIsThatOfTheStrategy) {
  const BandedTerms terms{.rounds = 8, .separation = 4, .band = 4};
  constexpr int64_t kCoordinates = 20'000;
  const at::Tensor strategy = BandedStrategy(terms.rounds, terms.band).matrix();
  const at::Tensor white = at::mm(strategy, noise_of(terms, kCoordinates));  // CC⁻¹Z: independent standard normals
  const at::Tensor covariance = at::mm(white, white.t()) / static_cast<double>(kCoordinates);
  const double off = (covariance - at::eye(8, at::kDouble)).abs().max().item<double>();
  EXPECT_LT(off, 5 * std::sqrt(2.0 / kCoordinates)) << covariance;
  for (int64_t round = 0; round < terms.rounds; ++round) {
    const at::Tensor sorted = std::get<0>(white[round].sort());
    double distance = 0;  // Kolmogorov–Smirnov
    for (int64_t i = 0; i < kCoordinates; ++i) {
      const auto below = static_cast<double>(1 - normal_tail(sorted[i].item<double>()));
      distance = std::max(distance, std::abs(below - (static_cast<double>(i) + 0.5) / kCoordinates));
    }
    EXPECT_LT(distance, 2.0 / std::sqrt(kCoordinates)) << "round " << round + 1;
  }
}

TEST(BandedGaussian, RoundsTakeBackNoise) {
  const BandedTerms terms{.rounds = 30, .separation = 15, .band = 15};
  const double alone = noise_of({30, 15, 1}, 4000).sum(0).std().item<double>();
  const double banded = noise_of(terms, 4000).sum(0).std().item<double>();
  EXPECT_NEAR(alone, std::sqrt(30.0), 0.05 * alone);
  EXPECT_NEAR(banded, BandedStrategy(30, 15).noise_in_total(), 0.05 * banded);
  EXPECT_LT(banded, alone / 2.4);
}

TEST(BandedGaussian, ABandOfOneIsTheGaussianMechanism) {
  Stream stream(3.0, 10, {.rounds = 3, .separation = 3, .band = 1});
  const auto plain = GroupwiseGaussian::calibrated(3.0, {{"x", 1, 10, 1.0}});
  Ledger one, other;
  const at::Tensor sum = at::ones({10}, at::kDouble);
  const at::Tensor own = stream.release(one, 1, sum);
  const Release expected = Channel::gaussian("sum", Observer::kClients, plain, kClients)
                               .release({.ledger = other, .round = 1, .client = kEveryone, .seed = 1}, [&] {
                                 return Access::bounded({{"x", sum.clone()}}, plain.groups(), Norm::kL2);
                               });
  EXPECT_TRUE(at::equal(own, expected.values().front().value));
}

TEST(BandedGaussian, ContinuesAsIfItHadNotBeenInterrupted) {
  const BandedTerms terms{.rounds = 7, .separation = 3, .band = 3};
  Stream whole(1.0, 5, terms);
  Ledger ledger;
  std::vector<at::Tensor> expected;
  NamedTensors state;
  for (int64_t round = 1; round <= terms.rounds; ++round) {
    Stream resumed(1.0, 5, terms);
    resumed.banded().restore(state);
    Ledger fresh;
    const at::Tensor sum = at::arange(5, at::kDouble) + static_cast<double>(round);
    const at::Tensor own = whole.release(ledger, round, sum), again = resumed.release(fresh, round, sum);
    EXPECT_TRUE(at::equal(own, again)) << "round " << round;
    EXPECT_LE(whole.banded().state().size(), 2U * 3U);
    state = clone(whole.banded().state());
  }
}

TEST(BandedGaussian, ARowSaysWhatAParticipationCosts) {
  const BandedTerms terms{.rounds = 6, .separation = 3, .band = 3};
  Stream stream(2.0, 5, terms);
  Ledger ledger;
  for (int64_t round = 1; round <= terms.rounds; ++round) stream.release(ledger, round, at::zeros({5}, at::kDouble));
  EXPECT_EQ(ledger.events().size(), 6U);
  for (const Event& event : ledger.events()) {
    EXPECT_NE(event.parameters.find("\"band\":[3.0],"), std::string::npos) << event.parameters;
    EXPECT_NE(event.parameters.find("\"separation\":[3.0]"), std::string::npos) << event.parameters;
  }
  Tally expected;
  expected.add(GroupwiseGaussian::calibrated(2.0, {{"x", 1, 5, 1.0}}).event(kClients), 2);
  const auto tallies = ledger.tallies("clients");
  ASSERT_EQ(tallies.size(), 3U);
  for (const auto& [client, tally] : tallies) EXPECT_NEAR(tally.proven(1e-5), expected.proven(1e-5), 1e-9);
}

// What grids and rounding add in each of the rounds that a participation shows in is part of what is charged.
TEST(BandedGaussian, NoiseLeavesRoomForTheGridOfEveryRound) {
  for (const int64_t band : {1, 4, 100}) {
    const BandedTerms terms{.rounds = 100, .separation = 100, .band = band};
    Stream stream(2.0, 1000, terms);
    const Event& event = stream.channel().terms();
    EXPECT_EQ(event.noise_scale / event.sensitivity, 2.0);
    EXPECT_GE(event.sensitivity, 1 + 0x1p-10 * std::sqrt(static_cast<double>(band)));
    EXPECT_LE(event.sensitivity, 1.02);
  }
}

TEST(BandedGaussian, AClientThatComesBackTooEarlyStopsTheProgram) {
  Stream stream(1.0, 3, {.rounds = 6, .separation = 3, .band = 3});
  Ledger ledger;
  const at::Tensor sum = at::zeros({3}, at::kDouble);
  stream.release(ledger, 1, sum, 1, {7});
  EXPECT_DEATH(stream.release(ledger, 3, sum, 1, {7}), "internal error");
  stream.release(ledger, 4, sum, 1, {7});
}

TEST(BandedGaussian, RefusesABandThatParticipationsDoNotLeaveRoomFor) {
  EXPECT_THROW(Stream(1.0, 3, {.rounds = 6, .separation = 2, .band = 3}), UserError);
  EXPECT_THROW(Stream(1.0, 3, {.rounds = 2, .separation = 5, .band = 3}), UserError);
  EXPECT_THROW(Stream(1.0, 3, {.rounds = 2, .separation = 5, .band = 0}), UserError);
  EXPECT_THROW(Stream(1e9, 1 << 20, {.rounds = 9, .separation = 9, .band = 9}), UserError);
}

// Fresh noise for a round that was released before shows once more what clients of the rounds before have sent.
TEST(BandedGaussian, ARoundThatIsReleasedAgainIsChargedToAllWhoShowInIt) {
  const BandedTerms terms{.rounds = 4, .separation = 4, .band = 3};
  for (const Generator generator : {Generator::kSecure, Generator::kReplay}) {
    Ledger ledger;
    const at::Tensor sum = at::zeros({3}, at::kDouble);
    Stream first(1.0, 3, terms, generator);
    for (int64_t round = 1; round <= 2; ++round) first.release(ledger, round, sum);
    const NamedTensors state = clone(first.banded().state());
    first.release(ledger, 3, sum);
    EXPECT_EQ(ledger.events().size(), 3U);
    Stream second(1.0, 3, terms, generator);
    second.banded().restore(state);
    ledger.rehearse();  // in the place of another process, which draws the same noise again
    second.release(ledger, 3, sum);
    const size_t again = generator == Generator::kSecure ? 3 : 0;  // clients 0, 1 and 2
    EXPECT_EQ(ledger.events().size(), 3 + again);
    second.release(ledger, 4, sum);
    EXPECT_EQ(ledger.events().size(), 4 + again) << "later rounds are new";
  }
}

}  // namespace
}  // namespace sotto::privacy
