// Noise before aggregation: what one record can do, what noise is there, and what each variant may say of it.
#include "methods/nbafl.h"

#include "methods/parts/averaging.h"
#include "methods/parts/loudness.h"
#include "privacy/mechanisms/gaussian.h"
#include "small_run.h"

#include <gtest/gtest.h>

#include <cmath>

namespace sotto::federation {
namespace {

constexpr double kDelta = 1e-3;
const std::string kTerms = "epsilon = 2\ndelta = 1e-3\nadjacency = \"zero-out\"\n";
// So slow that an update is nothing beside its noise.
const std::string kStandstill = "lr = 1e-12\n";

std::string config(const std::string& options, const std::string& federation = "lr = 0.2\n",
                   const std::string& privacy = kTerms, int rounds = 10) {
  return fmt::format(
      "rounds = {}\n[data]\nclients = 4\n[federation]\nbatch = 16\n{}[record]\nuploads = true\n[privacy]\n{}[method]\n"
      "name = \"nbafl\"\n{}",
      rounds, federation, privacy, options);
}

at::Tensor flat(const NamedTensors& values) {
  std::vector<at::Tensor> parts;
  for (const auto& [name, value] : values) parts.push_back(value.flatten());
  return at::cat(parts).to(at::kDouble);
}

struct Sent {
  at::Tensor value;
  double records = 0;
};

struct Kept : RunSink {
  void upload(int64_t, int64_t, const privacy::Upload& upload) override {
    current.push_back(
        {upload.values()[0].value.to(at::kDouble), find_tensor(upload.values(), methods::kRecordsName).item<double>()});
  }
  void round(const RoundRecord& record) override { rounds.push_back(record); }
  void checkpoint(const Checkpoint& point) override {
    broadcasts.push_back(flat(point.broadcast.values));
    uploads.push_back(std::exchange(current, {}));
  }
  // What the server made of the uploads of round `r` (from 0), without their weighted mean.
  at::Tensor beyond_mean(size_t r) const {
    at::Tensor mean = at::zeros_like(broadcasts[r]);
    double total = 0;
    for (const Sent& sent : uploads[r]) {
      mean.add_(sent.value, sent.records);
      total += sent.records;
    }
    return broadcasts[r] - mean / total;
  }

  std::vector<Sent> current;
  std::vector<std::vector<Sent>> uploads;
  std::vector<at::Tensor> broadcasts;
  std::vector<RoundRecord> rounds;
};

privacy::Guarantee spent(const privacy::Ledger& ledger, int64_t client) {
  return ledger.tallies("server").at(client).guarantee(kDelta);
}

double root_mean_square(const std::vector<at::Tensor>& values) {
  return std::sqrt(at::cat(values).square().mean().item<double>());
}

at::Tensor clipped(const at::Tensor& weights, double bound) {
  return weights / std::max(1.0, weights.norm().item<double>() / bound);
}

// Noise measured on n values is off by more than 5/√(2n) of itself once in two million times.
void expect_stddev(const std::vector<at::Tensor>& noise, double stddev) {
  const auto count = static_cast<double>(at::cat(noise).numel());
  EXPECT_NEAR(root_mean_square(noise) / stddev, 1.0, 5 / std::sqrt(2 * count));
}

// A client of one blob's record against a client of another's, each far longer than the bound: its neighbour's clipped
// update is the opposite. 2S is reached, and the 2C/m that the paper takes is off by the factor m.
TEST(Nbafl, OneRecordMayTurnAnUpdateRound) {
  const double bound = 0.5;
  const at::Tensor towards = at::randn({40}) * 100;
  const auto release = [&](const at::Tensor& update, privacy::Adjacency adjacency) {
    NamedTensors values;
    values.push_back({"update", update});
    return privacy::clip_whole(privacy::Contribution(std::move(values)), {{"update", 1, bound}},
                               {adjacency, privacy::Unit::kRecord});
  };
  for (const auto adjacency : {privacy::Adjacency::kAddRemove, privacy::Adjacency::kReplace}) {
    const auto mechanism = privacy::GroupwiseGaussian::with_stddevs(release(towards, adjacency).groups(), {1e-5});
    const auto seen = [&](const at::Tensor& update) {
      privacy::Ledger ledger;
      return privacy::Channel::gaussian("update", privacy::Observer::kServer, mechanism,
                                        {adjacency, privacy::Unit::kRecord})
          .release({.ledger = ledger}, [&] { return release(update, adjacency); })
          .values()[0]
          .value;
    };
    const double moved = (seen(towards) - seen(-towards)).norm().item<double>();
    EXPECT_NEAR(moved, 2 * bound, 1e-5);
    EXPECT_LE(moved, mechanism.groups()[0].sensitivity);
    const double printed = 2 * bound / 60;
    EXPECT_GT(moved, 59 * printed);
  }
}

// The same through a client's own training: one record of sixty, so far out that it decides alone where the model goes.
TEST(Nbafl, OneRecordOfManyDecidesAClientsUpdate) {
  const auto update_with = [](double where) {
    auto setup = small_setup(config("clip = 0.01\n", "lr = 1\nlocal_epochs = 1\n",
                                    "epsilon = 1e6\ndelta = 1e-3\nadjacency = \"replace\"\n", 1));
    const int64_t record = setup.partition().shard(0).train[0].item<int64_t>();
    setup.dataset().train.x[record].fill_(where);
    privacy::Ledger ledger;
    return run<Kept>(setup, ledger).uploads[0][0].value;
  };
  const double moved = (update_with(1e6) - update_with(-1e6)).norm().item<double>();
  EXPECT_LE(moved, 2 * 0.01 * 1.05) << "the bound, and a little noise";
  EXPECT_GT(moved, 20 * 2 * 0.01 / 60) << "twenty times what the paper allows a record";
}

TEST(Nbafl, TheSoundNoiseIsThatOfTwiceTheBoundUnderEveryAdjacency) {
  for (const char* adjacency : {"zero-out", "replace"}) {
    const auto setup = small_setup(config(
        "clip = 0.3\n", kStandstill, fmt::format("epsilon = 2\ndelta = 1e-3\nadjacency = \"{}\"\n", adjacency), 40));
    privacy::Ledger ledger;
    const Kept kept = run<Kept>(setup, ledger);
    std::vector<at::Tensor> noise;
    for (const auto& round : kept.uploads) {
      for (const Sent& sent : round) noise.push_back(sent.value);
    }
    const auto planned = setup.plan_for(0)[0];
    expect_stddev(noise, planned.reach().noise_stddev);
    EXPECT_NEAR(planned.terms().sensitivity, 2 * 0.3, 2 * 0.3 * 0.01);
    privacy::Tally tally;
    tally.add(planned.terms(), 40);
    EXPECT_LE(tally.proven(kDelta), 2.0);
    EXPECT_GT(tally.proven(kDelta), 1.98);
    EXPECT_LT(kept.beyond_mean(0)
                  .sub(flat(setup.method().make_server(setup.public_context())->open().values))
                  .abs()
                  .max()
                  .item<double>(),
              1e-5)
        << "the server adds the mean of the updates to its model and nothing else";
  }
}

TEST(Nbafl, ThePaperNoiseIsWhatItsFormulaSays) {
  const auto setup = small_setup(config("variant = \"paper\"\nclip = 0.7\n", kStandstill, kTerms, 40));
  privacy::Ledger ledger;
  const Kept kept = run<Kept>(setup, ledger);
  std::vector<at::Tensor> noise;
  for (size_t r = 1; r < kept.uploads.size(); ++r) {
    for (const Sent& sent : kept.uploads[r]) noise.push_back(sent.value - clipped(kept.broadcasts[r - 1], 0.7));
    EXPECT_LT(kept.beyond_mean(r).abs().max().item<double>(), 1e-5) << "no down-link noise while L = T";
  }
  const double c = std::sqrt(2 * std::log(1.25 / kDelta));
  expect_stddev(noise, c * 40 * (2 * 0.7 / 60) / 2);
}

TEST(Nbafl, TheDownLinkGetsThePapersNoiseIfFewUploadsAreSeen) {
  const auto setup = small_setup(config("variant = \"paper\"\nclip = 0.7\nexposures = 3\n", kStandstill, kTerms, 50));
  privacy::Ledger ledger;
  const Kept kept = run<Kept>(setup, ledger);
  std::vector<at::Tensor> uplink, downlink;
  for (size_t r = 1; r < kept.uploads.size(); ++r) {
    for (const Sent& sent : kept.uploads[r]) uplink.push_back(sent.value - clipped(kept.broadcasts[r - 1], 0.7));
    downlink.push_back(kept.beyond_mean(r));
  }
  const double c = std::sqrt(2 * std::log(1.25 / kDelta));
  expect_stddev(uplink, c * 3 * (2 * 0.7 / 60) / 2);
  expect_stddev(downlink, 2 * c * 0.7 * std::sqrt(50.0 * 50 - 9 * 4) / (60 * 4 * 2));
  for (const auto& event : ledger.events()) EXPECT_EQ(event.what, "model") << "post-processing has no row";
  EXPECT_EQ(ledger.rows(), 50 * 4);

  privacy::Ledger again;
  const Kept other = run<Kept>(setup, again, 3);
  EXPECT_TRUE(at::equal(kept.broadcasts.back(), other.broadcasts.back()));
}

// T > L√N: with nine clients and one exposure, from the fourth round on.
TEST(Nbafl, TheDownLinkIsNoisyAboveItsConditionOnly) {
  methods::PrintedNoise noise{
      .clip = 1, .delta = kDelta, .least_records = 10, .rounds = 3, .exposures = 1, .cohort = 9};
  EXPECT_EQ(noise.downlink_stddev(1.0), 0.0);
  noise.rounds = 4;
  const double c = std::sqrt(2 * std::log(1.25 / kDelta));
  EXPECT_NEAR(noise.downlink_stddev(1.0), 2 * c * std::sqrt(16.0 - 9.0) / 90, 1e-12);
  EXPECT_NEAR(noise.downlink_stddev(0.5), 2 * noise.downlink_stddev(1.0), 1e-12);
  noise.exposures = 2;
  EXPECT_EQ(noise.downlink_stddev(1.0), 0.0);
  noise.rounds = noise.exposures = 1000;
  noise.cohort = 1;
  EXPECT_EQ(noise.downlink_stddev(1.0), 0.0) << "seen in every round, there is nothing left to hide";
}

TEST(Nbafl, ThePaperClaimsItsBudgetAndProvesFarLess) {
  const auto setup = small_setup(config("variant = \"paper\"\n"));
  privacy::Ledger ledger;
  run<Kept>(setup, ledger);
  EXPECT_EQ(spent(ledger, 0).claimed, 2.0);
  EXPECT_GT(spent(ledger, 0).proven, 10 * 2.0);
  const auto planned = setup.plan_for(0)[0];
  privacy::Tally tally;
  tally.add(planned.terms(), planned.times());
  EXPECT_EQ(tally.proven(kDelta), spent(ledger, 0).proven);
  EXPECT_EQ(tally.claimed(kDelta), spent(ledger, 0).claimed);
}

TEST(Nbafl, TheSoundVariantKeepsEveryClientsOwnBudget) {
  const auto setup = small_setup(config("", "lr = 0.2\ncohort = 3\n", kTerms + "budgets = [1, 4]\n"));
  privacy::Ledger ledger;
  run<Kept>(setup, ledger);
  for (int64_t client = 0; client < 4; ++client) {
    const double budget = client % 2 == 0 ? 1.0 : 4.0;
    EXPECT_LE(spent(ledger, client).proven, budget);
    EXPECT_GT(spent(ledger, client).proven, 0.98 * budget);
    EXPECT_EQ(spent(ledger, client).claimed, spent(ledger, client).proven);
    const auto planned = setup.plan_for(client)[0];
    privacy::Tally tally;
    tally.add(planned.terms(), planned.times());
    EXPECT_EQ(tally.proven(kDelta), spent(ledger, client).proven);
  }
}

TEST(Nbafl, AClientAbstainsExactlyWhenItsBudgetIsSpent) {
  const auto setup = small_setup(config(""));
  privacy::Ledger ledger;
  ledger.agree(*setup.spec().privacy, privacy::HeldTo::kProven);
  privacy::Event earlier = setup.plan_for(2)[0].terms();
  earlier.client = 2;
  earlier.round = 1000;
  earlier.steps = 4;  // of the ten that the budget pays for
  ledger.spend(earlier);
  const Kept kept = run<Kept>(setup, ledger);
  for (const RoundRecord& record : kept.rounds) {
    EXPECT_EQ(record.abstained, record.round <= 6 ? std::vector<int64_t>{} : std::vector<int64_t>{2});
    EXPECT_EQ(record.uploads, record.round <= 6 ? 4 : 3);
  }
  EXPECT_LE(spent(ledger, 2).proven, 2.0 * (1 + 1e-9));
}

TEST(Nbafl, LearnsAtAGenerousBudgetAndDrownsAtATightOne) {
  const auto at_budget = [](const char* epsilon) {
    return small_setup(config("clip = 0.5\n", "lr = 0.2\n",
                              fmt::format("epsilon = {}\ndelta = 1e-3\nadjacency = \"replace\"\n", epsilon)));
  };
  privacy::Ledger generous, tight;
  EXPECT_GT(run<Kept>(at_budget("1000"), generous).rounds.back().evaluation->global_accuracy, 0.8);
  EXPECT_LT(run<Kept>(at_budget("0.01"), tight).rounds.back().evaluation->global_accuracy, 0.7);
  EXPECT_EQ(methods::loudness(at_budget("0.01").plan_for(0)[0].reach()).verdict, "noise dominates");
}

// Silence would say that some record made training diverge.
TEST(Nbafl, ADivergedClientSendsTheBroadcastBackUnderNoise) {
  auto setup = small_setup(config("clip = 0.3\n", kStandstill, kTerms, 10));
  setup.dataset().train.x[setup.partition().shard(1).train[0].item<int64_t>()].fill_(INFINITY);
  privacy::Ledger ledger;
  const Kept kept = run<Kept>(setup, ledger);
  std::vector<at::Tensor> noise;
  for (const auto& round : kept.uploads) {
    ASSERT_EQ(round.size(), 4U);
    noise.push_back(round[1].value);
  }
  expect_stddev(noise, setup.plan_for(1)[0].reach().noise_stddev);
}

TEST(Nbafl, RefusesWhatMeansNothing) {
  expect_refused(config("exposures = 2\n"), "method.variant = \"paper\"");
  expect_refused(config("downlink = true\n"), "downlink");
  expect_refused(config("variant = \"paper\"\nexposures = 11\n"), "10 rounds");
  expect_refused(config("clip = 0\n"), "clip");
  expect_refused(config("", "lr = 0.2\n", kTerms + "unit = \"client\"\n"), "privacy.unit = \"record\"");
}

}  // namespace
}  // namespace sotto::federation
