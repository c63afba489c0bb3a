#include "base/error.h"
#include "base/random.h"
#include "privacy/access.h"
#include "privacy/accounting/accountant.h"
#include "privacy/accounting/gaussian.h"
#include "privacy/accounting/proven.h"
#include "privacy/channel.h"
#include "privacy/ledger.h"
#include "privacy/mechanisms/counts.h"
#include "privacy/mechanisms/gaussian.h"
#include "privacy/mechanisms/gumbel.h"
#include "privacy/mechanisms/laplace.h"
#include "privacy/mechanisms/quantile.h"

#include <ATen/ATen.h>

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <vector>

namespace sotto::privacy {
namespace {

constexpr Neighbours kAddRecord{Adjacency::kAddRemove, Unit::kRecord};

Contribution one(const at::Tensor& value) {
  return Contribution({{"x", value}});
}

// n releases of a vector of zeros: its noise.
at::Tensor noise_of(const GroupwiseGaussian& mechanism, int64_t releases) {
  Ledger ledger;
  std::vector<at::Tensor> rows;
  for (int64_t round = 0; round < releases; ++round) {
    NamedTensors values;
    for (const Group& group : mechanism.groups()) values.push_back({group.name, at::zeros({group.coordinates})});
    const Release release = Channel::gaussian("test", Observer::kServer, mechanism, kAddRecord)
                                .release({.ledger = ledger, .round = round}, [&] {
                                  return Access::bounded(std::move(values), mechanism.groups(), Norm::kL2);
                                });
    std::vector<at::Tensor> parts;
    for (const auto& [name, value] : release.values()) parts.push_back(value);
    rows.push_back(at::cat(parts));
  }
  return at::stack(rows).to(at::kDouble);
}

double stddev(const at::Tensor& values) {
  return values.std().item<double>();
}

TEST(GroupwiseGaussian, OneGroupIsThePlainGaussian) {
  const auto mechanism = GroupwiseGaussian::calibrated(2.0, {{"g", 1, 1000, 0.5}});
  EXPECT_GE(mechanism.noise_multiplier(), 2.0);
  EXPECT_LT(mechanism.noise_multiplier(), 2.0 * 1.003);
  const at::Tensor noise = noise_of(mechanism, 100);
  EXPECT_NEAR(stddev(noise), mechanism.noise_stddev(0), 0.01 * mechanism.noise_stddev(0));
  EXPECT_NEAR(mechanism.noise_stddev(0), 1.0, 0.005);
}

// Whatever the weights, the whole costs the multiplier asked for.
TEST(GroupwiseGaussian, SpendsTheSameWhateverTheWeights) {
  const std::vector<Group> groups = {{"a", 1, 10, 1.0}, {"b", 1, 1000, 0.1}, {"c", 1, 1, 5.0}};
  for (const std::vector<double>& weights : {std::vector<double>{}, {1, 1, 1}, {0.9, 0.05, 0.05}, {1e-6, 1, 1e3}}) {
    const auto mechanism = GroupwiseGaussian::calibrated(3.0, groups, weights);
    EXPECT_GE(mechanism.noise_multiplier(), 3.0);
    EXPECT_LT(mechanism.noise_multiplier(), 3.0 * 1.003);
  }
}

TEST(GroupwiseGaussian, DefaultWeightsHaveTheLeastNoiseEnergy) {
  const std::vector<Group> groups = {{"a", 1, 100, 1.0}, {"b", 1, 400, 0.2}};
  const auto energy = [&](const std::vector<double>& weights) {
    const auto m = GroupwiseGaussian::calibrated(1.0, groups, weights);
    return 100 * std::pow(m.noise_stddev(0), 2) + 400 * std::pow(m.noise_stddev(1), 2);
  };
  const double least = energy({});
  for (const double share : {0.1, 0.3, 0.5, 0.65, 0.75, 0.9}) EXPECT_GE(energy({share, 1 - share}), least * 0.9999);
}

TEST(GroupwiseGaussian, EachGroupGetsItsOwnNoiseIndependently) {
  const auto mechanism = GroupwiseGaussian::calibrated(1.0, {{"a", 1, 500, 1.0}, {"b", 1, 500, 0.1}}, {0.5, 0.5});
  const at::Tensor noise = noise_of(mechanism, 60);
  const at::Tensor a = noise.narrow(1, 0, 500), b = noise.narrow(1, 500, 500);
  EXPECT_NEAR(stddev(a), mechanism.noise_stddev(0), 0.03 * mechanism.noise_stddev(0));
  EXPECT_NEAR(stddev(b), mechanism.noise_stddev(1), 0.03 * mechanism.noise_stddev(1));
  const double correlation = (a * b).mean().item<double>() / (stddev(a) * stddev(b));
  EXPECT_LT(std::abs(correlation), 4.0 / std::sqrt(60.0 * 500.0));
}

// Whatever direction a change takes, as far as the joint bound lets it, it costs no more than the multiplier asked for.
TEST(GroupwiseGaussian, GroupsBoundedTogetherCostOneMultiplier) {
  for (const size_t count : {1U, 3U, 300U}) {
    std::vector<Group> groups;
    for (size_t g = 0; g < count; ++g) {
      groups.push_back(
          {fmt::format("{}", g), 1, 1 + static_cast<int64_t>(g * g), 0.01 * static_cast<double>(1 + g % 7)});
    }
    const auto mechanism = GroupwiseGaussian::joint(2.5, groups);
    EXPECT_EQ(mechanism.noise_multiplier(), 2.5);
    RandomStream stream(1, "directions");
    for (int direction = 0; direction < 200; ++direction) {
      std::vector<double> part(count);
      double square = 0;
      for (double& x : part) {
        x = direction < 100 ? std::abs(stream.normal()) : (stream.uniform() < 0.1 ? 1.0 : 0.0);
        square += x * x;
      }
      double cost = 0;
      for (size_t g = 0; g < count; ++g) {
        const double moved = square > 0 ? part[g] / std::sqrt(square) * groups[g].sensitivity : 0;
        cost += std::pow(moved / mechanism.noise_stddev(g), 2);
      }
      EXPECT_LE(cost, 1 / (2.5 * 2.5));
    }
    for (size_t g = 0; g < count; ++g) {
      EXPECT_NEAR(mechanism.noise_stddev(g) / (2.5 * groups[g].sensitivity), 1, 0.05) << "and hardly less";
    }
  }
  EXPECT_THROW(GroupwiseGaussian::joint(0, {{"g", 1, 1, 1.0}}), UserError);
}

TEST(GroupwiseGaussian, AGroupWithoutNoiseProvesNothing) {
  const auto mechanism = GroupwiseGaussian::with_stddevs({{"a", 1, 10, 1.0}, {"b", 1, 10, 1.0}}, {1.0, 0.0});
  const Event event = mechanism.event({});
  EXPECT_EQ(mechanism.noise_multiplier(), 0);
  EXPECT_EQ(event.why_unproven, "'b' is released without noise");
  Tally tally;
  tally.add(event);
  EXPECT_EQ(tally.proven(1e-3), std::numeric_limits<double>::infinity());
}

TEST(GroupwiseGaussian, PaperNoiseIsChargedForWhatItIs) {
  const auto mechanism = GroupwiseGaussian::with_stddevs({{"a", 1, 10, 2.0}, {"b", 1, 10, 1.0}}, {2.0, 2.0});
  EXPECT_NEAR(mechanism.noise_multiplier(), 1 / std::sqrt(1.0 + 0.25), 0.003);
}

TEST(GroupwiseGaussian, EmptyGroupsSpendNothingAndBadOnesAreUserErrors) {
  const auto mechanism = GroupwiseGaussian::calibrated(2.0, {{"none", 0, 0, 1.0}, {"g", 1, 10, 1.0}});
  EXPECT_GE(mechanism.noise_multiplier(), 2.0);
  EXPECT_LT(mechanism.noise_multiplier(), 2.0 * 1.003);
  EXPECT_THROW(GroupwiseGaussian::calibrated(2.0, {{"none", 0, 0, 1.0}}), UserError);
  EXPECT_THROW(GroupwiseGaussian::calibrated(2.0, {}), UserError);
  EXPECT_THROW(GroupwiseGaussian::calibrated(0.0, {{"g", 1, 10, 1.0}}), UserError);
  EXPECT_THROW(GroupwiseGaussian::calibrated(NAN, {{"g", 1, 10, 1.0}}), UserError);
  EXPECT_THROW(GroupwiseGaussian::calibrated(1.0, {{"g", 1, 10, 1.0}}, {-1.0}), UserError);
}

TEST(GroupwiseGaussian, ReplayedNoiseRepeatsAndSecureNoiseDoesNot) {
  const auto mechanism = GroupwiseGaussian::calibrated(1.0, {{"g", 1, 50, 1.0}});
  EXPECT_TRUE(at::equal(noise_of(mechanism, 3), noise_of(mechanism, 3)));
  Ledger ledger;
  const ReleaseContext secure{.ledger = ledger, .generator = Generator::kSecure};
  const auto bounded = [] { return clip_whole(one(at::zeros({50})), {{"g", 1, 0.5}}, {}); };
  const auto m = GroupwiseGaussian::calibrated(1.0, bounded().groups());
  const auto draw = [&] {
    return Channel::gaussian("x", Observer::kServer, m, {}).release(secure, bounded).values()[0].value;
  };
  EXPECT_FALSE(at::equal(draw(), draw()));
  EXPECT_EQ(ledger.events().size(), 2U) << "another draw of secure noise is another release";
}

TEST(Laplace, HasItsScaleAndCostsItsEpsilon) {
  Ledger ledger;
  Bounded bounded = clip_each(one(at::zeros({1, 20000})), {{"g", 1, 1.0}}, 1.0, Adjacency::kAddRemove, Norm::kL1);
  const auto channel = Channel::laplace("x", Observer::kServer, LaplaceMechanism(bounded.groups()[0], 2.0), kAddRecord);
  const Event event = channel.terms();
  const Release release = channel.release({.ledger = ledger}, [&] { return std::move(bounded); });
  EXPECT_NEAR(release.values()[0].value.abs().mean().item<double>(), 2.0, 0.06);
  Tally tally;
  tally.add(event);
  EXPECT_LE(tally.proven(1e-9), 0.5 * 1.003);
  EXPECT_GT(tally.proven(1e-9), 0.49);
}

// Reference values: one-shot scales 2kH/ε for 20 selections out of one budget, and the noise of a group of share ρ
// with weight ω against isotropic noise, ρ/ω and (1-ρ)/(1-ω).
TEST(ReferenceValues, TopKScales) {
  EXPECT_NEAR(LaplaceTopK(512, 0.1, 103, 0.1 / 20).scale(), 4120.0, 4120.0 * 2e-3);
  EXPECT_NEAR(LaplaceTopK(192, 0.1, 58, 1.0 / 20).scale(), 232.0, 232.0 * 2e-3);
  EXPECT_NEAR(LaplaceTopK(64, 1.0, 7, 50.0).scale(), 0.28, 0.28 * 2e-3);
  EXPECT_GE(LaplaceTopK(64, 1.0, 7, 50.0).scale(), 0.28);
}

TEST(ReferenceValues, GroupNoiseAgainstIsotropicNoise) {
  struct Row {
    double share, weight, first, second;
  };
  constexpr int64_t kCoordinates = 10000;
  for (const Row& row : {Row{0.05, 0.813394503136629, 0.0614707866935, 5.09095399636},
                         Row{0.05, 0.186605496863371, 0.267944947177, 1.16794494718},
                         Row{0.05, 0.314519859138756, 0.158972473589, 1.38588989435}, Row{0.05, 0.05, 1.0, 1.0}}) {
    const auto count = static_cast<int64_t>(row.share * kCoordinates);
    const auto mechanism = GroupwiseGaussian::calibrated(
        2.0, {{"a", 1, count, std::sqrt(row.share)}, {"b", 1, kCoordinates - count, std::sqrt(1 - row.share)}},
        {row.weight, 1 - row.weight});
    const double isotropic = GroupwiseGaussian::calibrated(2.0, {{"all", 1, kCoordinates, 1.0}}).noise_stddev(0);
    EXPECT_NEAR(std::pow(mechanism.noise_stddev(0) / isotropic, 2) / row.first, 1.0, 1e-6);
    EXPECT_NEAR(std::pow(mechanism.noise_stddev(1) / isotropic, 2) / row.second, 1.0, 1e-6);
  }
}

TEST(LaplaceTopK, FindsTheLargestScoresWhenNoiseIsSmallAndCostsEpsilon) {
  Ledger ledger;
  const LaplaceTopK mechanism(6, 1.0, 2, 1000.0);
  EXPECT_NEAR(mechanism.scale(), 2 * 2 * 1.0 / 1000.0, 1e-4);
  const auto channel = Channel::top_k("set", Observer::kServer, mechanism, {});
  const Event event = channel.terms();
  const Release release = channel.release({.ledger = ledger}, [] {
    return clamp_each(one(at::tensor({0.1F, 0.9F, 0.2F, 0.0F, 7.0F, 0.3F})), 1.0);
  });
  EXPECT_TRUE(at::equal(release.values()[0].value, at::tensor({1, 4}, at::kLong)));
  Tally tally;
  tally.add(event);
  EXPECT_LE(tally.proven(1e-9), 1000.0);
  EXPECT_GT(tally.proven(1e-9), 990.0);
}

// The worst case: all scores at 0 in one world, all of the first k at H in the other. The ratio of how often the set
// {first k} comes out must stay below e^ε.
TEST(LaplaceTopK, TheWorstPairOfWorldsStaysWithinEpsilon) {
  constexpr double kEpsilon = 1.0;
  constexpr int kTrials = 20000;
  const LaplaceTopK mechanism(4, 1.0, 2, kEpsilon);
  Ledger ledger;
  const auto hits = [&](const at::Tensor& scores, int64_t client) {
    int count = 0;
    for (int i = 0; i < kTrials; ++i) {
      const Release release = Channel::top_k("set", Observer::kServer, mechanism, {})
                                  .release({.ledger = ledger, .round = i, .client = client},
                                           [&] { return clamp_each(one(scores.clone()), 1.0); });
      if (at::equal(release.values()[0].value, at::tensor({0, 1}, at::kLong))) ++count;
    }
    return count;
  };
  const int low = hits(at::tensor({0.0F, 0.0F, 1.0F, 1.0F}), 1);
  const int high = hits(at::tensor({1.0F, 1.0F, 0.0F, 0.0F}), 2);
  EXPECT_GT(high, low) << "the scores must matter";
  const double ratio = static_cast<double>(high) / low;
  const double error = 4 * std::sqrt(1.0 / high + 1.0 / low);
  EXPECT_LT(std::log(ratio), kEpsilon + error);
}

TEST(LaplaceTopK, ImpossibleChoicesAreUserErrors) {
  EXPECT_THROW(LaplaceTopK(3, 1.0, 4, 1.0), UserError);
  EXPECT_THROW(LaplaceTopK(3, 1.0, 0, 1.0), UserError);
  EXPECT_THROW(LaplaceTopK(3, 1.0, 1, 0.0), UserError);
}

TEST(GumbelTopK, FindsTheLargestScoresWhenNoiseIsSmallAndCostsEpsilon) {
  Ledger ledger;
  const GumbelTopK mechanism(6, 1.0, 2, 500.0);
  EXPECT_NEAR(mechanism.scale(), 2.0 / 500.0, 1e-5);
  const auto channel = Channel::top_k("set", Observer::kServer, mechanism, {});
  const Event event = channel.terms();
  const Release release = channel.release({.ledger = ledger}, [] {
    return clamp_each(one(at::tensor({0.1F, 0.9F, 0.2F, 0.0F, 7.0F, 0.3F})), 1.0);
  });
  EXPECT_TRUE(at::equal(release.values()[0].value, at::tensor({1, 4}, at::kLong)));
  Tally tally;
  tally.add(event);
  EXPECT_LE(tally.proven(1e-9), 1000.0);
  EXPECT_GT(tally.proven(1e-9), 990.0);
}

// How often each set comes out, against the law of two picks.
TEST(GumbelTopK, SetsHaveTheLawOfTheExponentialMechanism) {
  constexpr int kTrials = 20000;
  constexpr double kPick = 3.0;
  const std::vector<double> scores = {0.0, 0.05, 0.1, 0.07};
  const GumbelTopK mechanism(4, 0.1, 2, kPick);
  Ledger ledger;
  std::map<std::pair<int64_t, int64_t>, int> seen;
  for (int i = 0; i < kTrials; ++i) {
    const Release release =
        Channel::top_k("set", Observer::kServer, mechanism, {}).release({.ledger = ledger, .round = i}, [&] {
          return clamp_each(one(at::tensor(scores, at::kFloat)), 0.1);
        });
    const at::Tensor indices = release.values()[0].value;
    ++seen[{indices[0].item<int64_t>(), indices[1].item<int64_t>()}];
  }
  const auto weight = [&](size_t i) { return std::exp(scores[i] * kPick / 0.2); };
  const double total = weight(0) + weight(1) + weight(2) + weight(3);
  double statistic = 0;
  for (size_t a = 0; a < 4; ++a) {
    for (size_t b = a + 1; b < 4; ++b) {
      const double due = kTrials * weight(a) * weight(b) / total * (1 / (total - weight(a)) + 1 / (total - weight(b)));
      const double found = seen[{static_cast<int64_t>(a), static_cast<int64_t>(b)}];
      statistic += (found - due) * (found - due) / due;
    }
  }
  EXPECT_LT(statistic, 25.7) << "chi-square of 5 degrees of freedom, 1 in 10⁴";
}

TEST(GumbelTopK, CostsFarLessThanLaplaceNoiseOfTheSameScale) {
  for (const int64_t k : {1, 5, 20, 100}) {
    const LaplaceTopK laplace(512, 0.1, k, 1.0);
    const GumbelTopK gumbel(512, 0.1, k, 1.0 / static_cast<double>(k));
    EXPECT_NEAR(gumbel.scale() / laplace.scale(), 1.0, 2e-3);
    Tally of_laplace, of_gumbel;
    of_laplace.add(laplace.event({}));
    of_gumbel.add(gumbel.event({}));
    EXPECT_LE(of_gumbel.proven(1e-5), of_laplace.proven(1e-5) * (1 + 1e-9)) << k;
    if (k < 100) continue;
    EXPECT_LT(of_gumbel.proven(1e-5), 0.2);
  }
}

TEST(GumbelTopK, ScoresThatAreNoNumbersAreTheLowest) {
  Ledger ledger;
  const GumbelTopK mechanism(3, 0.1, 2, 1e4);
  const Release release = Channel::top_k("set", Observer::kServer, mechanism, {}).release({.ledger = ledger}, [] {
    return clamp_each(one(at::tensor({std::numeric_limits<float>::quiet_NaN(), 0.05F, 9.0F})), 0.1);
  });
  EXPECT_TRUE(at::equal(release.values()[0].value, at::tensor({1, 2}, at::kLong)));
}

TEST(GumbelTopK, ImpossibleChoicesAreUserErrors) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  EXPECT_THROW(GumbelTopK(3, 1.0, 4, 1.0), UserError);
  EXPECT_THROW(GumbelTopK(3, 1.0, 0, 1.0), UserError);
  for (const double bad : {0.0, -1.0, kInfinity, std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_THROW(GumbelTopK(3, 1.0, 1, bad), UserError) << bad;
    EXPECT_THROW(GumbelTopK(3, bad, 1, 1.0), UserError) << bad;
  }
  EXPECT_THROW(GumbelTopK(3, 1.0, 1, 1e-13), UserError);
}

// What the ledger charges for counts: their own losses, not those of Rényi divergences.
TEST(Counts, CostWhatTheirLawCosts) {
  const auto proven = [](Adjacency adjacency, double multiplier) {
    const Bounded counts = count_each(Contribution({{"labels", at::zeros({5}, at::kLong)}}), 3, adjacency);
    Tally tally;
    tally.add(DiscreteGaussian(counts.groups()[0], multiplier).event({adjacency, Unit::kRecord}));
    return tally.proven(1e-5);
  };
  const auto pld = [](double stddev, int64_t moved) {
    const Steps steps{Step::discrete_gaussian(stddev), moved};
    return proven_epsilon({&steps, 1}, 1e-5);
  };
  EXPECT_EQ(proven(Adjacency::kAddRemove, 4.0), pld(4.0, 1));
  EXPECT_EQ(proven(Adjacency::kZeroOut, 4.0), pld(4.0, 1));
  EXPECT_EQ(proven(Adjacency::kReplace, 4.0), pld(4.0 * std::sqrt(2.0), 2));
  EXPECT_NEAR(proven(Adjacency::kReplace, 4.0) / gaussian_epsilon(0.25, std::log(1e-5)), 1.0, 0.02);
  // Integers that may move by 2, and noise beyond what is listed, by Rényi divergences.
  const auto renyi = make_accountant(Method::kRdp);
  renyi->compose(Step::gaussian(3.0));
  for (const double sensitivity : {2.0, 1e6}) {
    Tally tally;
    tally.add(DiscreteGaussian({"counts", 1, 3, sensitivity}, 3.0).event({}));
    EXPECT_NEAR(tally.proven(1e-5), renyi->epsilon(1e-5), 1e-9);
  }
}

TEST(Counts, ReleaseEveryClassWithIntegerNoise) {
  Ledger ledger;
  const auto labels = [] { return Contribution({{"labels", at::full({500}, 3, at::kLong)}}); };
  Bounded counts = count_each(labels(), 400, Adjacency::kAddRemove);
  const DiscreteGaussian mechanism(counts.groups()[0], 4.0);
  const Release release =
      Channel::counts("counts", Observer::kServer, mechanism, kAddRecord).release({.ledger = ledger}, [&] {
        return std::move(counts);
      });
  const at::Tensor value = release.values()[0].value;
  ASSERT_EQ(value.numel(), 400);
  EXPECT_EQ(value.scalar_type(), at::kLong);
  EXPECT_NEAR(value[3].item<double>(), 500, 6 * 4);
  EXPECT_NEAR(value.narrow(0, 4, 396).to(at::kDouble).std().item<double>(), 4.0, 0.6);
}

TEST(Counts, ArePublicWhenLabelsAre) {
  Ledger ledger;
  Bounded counts =
      count_each(Contribution({{"labels", at::tensor({1, 1}, at::kLong)}}), 2, Adjacency::kReplaceSameLabel);
  const DiscreteGaussian mechanism(counts.groups()[0], 1.0);
  const auto channel =
      Channel::counts("counts", Observer::kServer, mechanism, {Adjacency::kReplaceSameLabel, Unit::kRecord});
  const Event event = channel.terms();
  const Release release = channel.release({.ledger = ledger}, [&] { return std::move(counts); });
  EXPECT_TRUE(at::equal(release.values()[0].value, at::tensor({0, 2}, at::kLong)));
  Tally tally;
  tally.add(event);
  EXPECT_EQ(tally.proven(1e-5), 0.0);
}

TEST(Quantile, TheBoundFindsTheMedian) {
  const QuantileOptions options{.quantile = 0.5, .learning_rate = 0.2, .relative_noise = 0.01};
  RandomStream stream(1, "norms");
  double bound = 100.0;
  for (int step = 0; step < 200; ++step) {
    double sum = 0;
    for (int i = 0; i < 100; ++i) sum += below(stream.uniform() * 4.0, bound).value.item<double>();
    bound = next_bound(options, bound, at::full({1}, sum + stream.normal()), 100);
  }
  EXPECT_NEAR(bound, 2.0, 0.5);
}

TEST(Quantile, TheBitNeverTakesMoreThanATenthOfTheBudget) {
  EXPECT_LE(below_weight({}, 100.0, 10), 0.1);
  EXPECT_LT(below_weight({}, 1.0, 1000), 0.01);
}

TEST(NormHistogram, GivesTheQuantileOfManyNorms) {
  const QuantileOptions options{.quantile = 0.5, .tracking = QuantileOptions::Tracking::kHistogram};
  RandomStream stream(3, "norms");
  at::Tensor counts = first_statistic(options, 1.0).value;
  for (int step = 0; step < 20; ++step) {
    at::Tensor norms = at::empty({1, 500}, at::kDouble);
    for (int64_t i = 0; i < 500; ++i) norms[0][i] = std::exp(0.7 * stream.normal()) * 3.0;
    counts += norm_statistic(options, norms, 1.0);
  }
  EXPECT_EQ(counts.sum().item<double>(), 10000.0);
  const double bound = learnt_bound(options, {{"norms", counts}}, 1.0);
  EXPECT_NEAR(bound, 3.0, 0.15) << "the median of a log-normal";
  EXPECT_EQ(learnt_bound(options, {{"norms", at::zeros_like(counts)}}, 7.0), 7.0) << "nothing known";
}

TEST(NormHistogram, OneRecordMovesItByWhatIsCharged) {
  const QuantileOptions options{.tracking = QuantileOptions::Tracking::kHistogram};
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const double odd : {0.0, 1e-9, 1.0, 1e9, nan, std::numeric_limits<double>::infinity()}) {
    const at::Tensor all = norm_statistic(options, at::tensor({2.0, 0.3, odd}, at::kDouble), 1.0);
    const at::Tensor without = norm_statistic(options, at::tensor({2.0, 0.3}, at::kDouble), 1.0);
    const at::Tensor other = norm_statistic(options, at::tensor({2.0, 0.3, 50.0}, at::kDouble), 1.0);
    const bool counted = std::isfinite(odd);
    EXPECT_EQ((all - without).norm().item<double>(),
              counted ? norm_group(options, Adjacency::kAddRemove, false).sensitivity : 0.0)
        << odd;
    EXPECT_NEAR((all - other).norm().item<double>(),
                counted ? norm_group(options, Adjacency::kReplace, false).sensitivity : 1.0, 1e-6)
        << odd;
  }
  EXPECT_EQ(norm_statistic(options, at::empty({0}), 1.0).sum().item<double>(), 0.0) << "an empty batch";
}

}  // namespace
}  // namespace sotto::privacy
