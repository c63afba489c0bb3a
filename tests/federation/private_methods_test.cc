// What private methods promise, tried on a small federation.
#include "../support/expect_user_error.h"
#include "methods/parts/loudness.h"
#include "small_run.h"

#include <gtest/gtest.h>

#include <cmath>

namespace sotto::federation {
namespace {

std::string config(const std::string& method, const std::string& privacy, const std::string& options = "",
                   const std::string& federation = "", int rounds = 10) {
  return fmt::format(
      "rounds = {}\n[data]\nclients = 4\n[federation]\nlr = 0.2\n{}{}[privacy]\n{}[method]\nname = "
      "\"{}\"\n{}",
      rounds, federation.find("batch") == std::string::npos ? "batch = 16\n" : "", federation, privacy, method,
      options);
}

const std::string kLocal = "epsilon = 5\ndelta = 1e-3\nadjacency = \"zero-out\"\n";
const std::string kCentral = kLocal + "unit = \"client\"\nobserver = \"clients\"\n";

double proven(const privacy::Ledger& ledger, const std::string& observer, int64_t client) {
  const auto tallies = ledger.tallies(observer);
  privacy::Tally tally;
  if (tallies.contains(client)) tally.add(tallies.at(client));
  if (tallies.contains(privacy::kEveryone)) tally.add(tallies.at(privacy::kEveryone));
  return tally.proven(1e-3);
}

TEST(LdpFedAvg, LearnsAtAGenerousBudgetAndSpendsAlmostAllOfIt) {
  const auto setup = small_setup(config("ldp-fedavg", "epsilon = 50\ndelta = 1e-3\nadjacency = \"zero-out\"\n"));
  privacy::Ledger ledger;
  const Last result = run(setup, ledger);
  EXPECT_GT(result.rounds.back().evaluation->global_accuracy, 0.85);
  EXPECT_LE(proven(ledger, "server", 0), 50.0);
  EXPECT_GT(proven(ledger, "server", 0), 49.0);
  EXPECT_EQ(proven(ledger, "clients", 0), proven(ledger, "server", 0));
}

TEST(LdpFedAvg, NoiseDrownsATinyBudget) {
  const auto setup = small_setup(config("ldp-fedavg", "epsilon = 0.01\ndelta = 1e-3\nadjacency = \"replace\"\n"));
  privacy::Ledger ledger;
  EXPECT_LT(run(setup, ledger).rounds.back().evaluation->global_accuracy, 0.7);
  EXPECT_EQ(methods::loudness(setup.plan_for(0)[0].reach()).verdict, "noise dominates");
}

// Disjoint batches: one epoch touches a record once, so twice the epochs cost √2 in noise; replacing costs twice
// adding.
TEST(LdpFedAvg, NoiseFollowsTouchesAndAdjacency) {
  const auto stddev = [](const std::string& privacy, const std::string& federation) {
    return small_setup(config("ldp-fedavg", privacy, "", federation)).plan_for(0)[0].reach().noise_stddev;
  };
  const std::string replace = "epsilon = 5\ndelta = 1e-3\nadjacency = \"replace\"\n", whole = "batch = 1000\n";
  const double base = stddev(kLocal, whole);
  EXPECT_NEAR(stddev(kLocal, whole + "local_epochs = 4\n") / base, 2.0, 0.01);
  EXPECT_NEAR(stddev(replace, whole) / base, 2.0, 0.01);
  EXPECT_NEAR(stddev(replace, "") / base, 2.0, 0.01) << "slices of a random order do not amplify";
  EXPECT_LT(stddev(kLocal, "batch = 5\n") / base, 0.6) << "batches that each record draws in secret do";
}

TEST(LdpFedAvg, ThePlanSaysWhatTheLedgerWillHold) {
  for (const char* batches : {"disjoint", "poisson"}) {
    const auto setup = small_setup(config("ldp-fedavg", kLocal, fmt::format("batches = \"{}\"\n", batches), "", 2));
    privacy::Ledger ledger;
    run(setup, ledger);
    const auto planned = setup.plan_for(1)[0];
    privacy::Tally tally;
    tally.add(planned.terms(), planned.times());
    EXPECT_NEAR(tally.proven(1e-3), proven(ledger, "server", 1), 1e-9) << batches;
    EXPECT_LE(tally.proven(1e-3), 5.0);
  }
}

TEST(LdpFedAvg, AClientWhoseBudgetIsSpentAbstains) {
  auto setup = small_setup(config("ldp-fedavg", kLocal));
  privacy::Ledger ledger;
  ledger.agree(*setup.spec().privacy, privacy::HeldTo::kProven);
  // Client 2 has already spent half of its budget, in another run on this ledger.
  privacy::Event earlier = setup.plan_for(2)[0].terms();
  earlier.client = 2;
  earlier.round = 1000;
  earlier.steps = 5;
  ledger.spend(earlier);
  const Last result = run(setup, ledger);
  EXPECT_LE(proven(ledger, "server", 2), 5.0 * (1 + 1e-9));
  EXPECT_TRUE(result.rounds.front().abstained.empty());
  EXPECT_EQ(result.rounds.back().abstained, std::vector<int64_t>{2});
  EXPECT_EQ(result.rounds.back().uploads, 3);
}

TEST(LdpFedAvg, ClientsMayHaveBudgetsOfTheirOwn) {
  const auto setup = small_setup(config("ldp-fedavg", kLocal + "budgets = [1, 4]\n"));
  privacy::Ledger ledger;
  run(setup, ledger);
  EXPECT_LE(proven(ledger, "server", 0), 1.0);
  EXPECT_GT(proven(ledger, "server", 0), 0.98);
  EXPECT_LE(proven(ledger, "server", 1), 4.0);
  EXPECT_GT(proven(ledger, "server", 1), 3.95);
  EXPECT_EQ(proven(ledger, "server", 0), proven(ledger, "server", 2));
}

TEST(LdpFedAvg, AdaptiveClippingMovesTheBoundAndKeepsTheBudget) {
  const auto setup =
      small_setup(config("ldp-fedavg", kLocal, "clip = 50\nclipping = \"adaptive\"\nquantile_lr = 0.5\n"));
  privacy::Ledger ledger;
  const Last result = run(setup, ledger);
  const double clip = find_tensor(result.broadcast, "clip").item<double>();
  EXPECT_LT(clip, 20.0) << "gradients here are far smaller than 50";
  EXPECT_LE(proven(ledger, "server", 0), 5.0);
}

struct EveryCheckpoint : Last {
  void checkpoint(const Checkpoint& point) override {
    Last::checkpoint(point);
    points.push_back({point.round, {point.broadcast.round, clone(point.broadcast.values)}, clone(point.server_state)});
  }
  std::vector<Checkpoint> points;
};

TEST(LdpFedAvg, ThePublishedModelMayBeTheMeanOfAllRounds) {
  const auto every_round = [](config::RunSpec& spec) { spec.record.checkpoint_every = 1; };
  const auto setup = changed(small_setup(config("ldp-fedavg", kLocal, "averaging = 1\n", "", 4)), every_round);
  privacy::Ledger ledger;
  const auto result = run<EveryCheckpoint>(setup, ledger);
  ASSERT_EQ(result.points.size(), 4U);
  const std::string name = result.broadcast.front().name;
  at::Tensor sum = at::zeros_like(result.broadcast.front().value);
  for (size_t t = 0; t < 4; ++t) {  // round t + 1 counts t + 1
    sum += static_cast<double>(t + 1) * find_tensor(result.points[t].broadcast.values, "iterate." + name);
  }
  EXPECT_TRUE(at::allclose(result.broadcast.front().value, sum / 10.0, 1e-4, 1e-6));
  EXPECT_LE(proven(ledger, "server", 0), 5.0);

  const auto plain = changed(small_setup(config("ldp-fedavg", kLocal, "", "", 4)), every_round);
  privacy::Ledger other;
  const auto last = run<EveryCheckpoint>(plain, other);
  EXPECT_TRUE(
      at::allclose(find_tensor(last.broadcast, name), find_tensor(result.broadcast, "iterate." + name), 1e-3, 1e-5))
      << "clients go on from the last model as ever";
}

TEST(LdpFedAvg, SaysWhatViewsAndAveragesAreFor) {
  expect_refused(config("ldp-fedavg", kLocal, "views = 4\n"), "only images have views");
  EXPECT_THROW(small_setup(config("ldp-fedavg", kLocal, "view_flip = true\n")), UserError);
  EXPECT_THROW(small_setup(config("ldp-fedavg", kLocal, "averaging = 2\nclipping = \"adaptive\"\n")), UserError);
}

TEST(LdpFedAvg, SecureNoiseIsRecordedAndNeverTheSame) {
  const auto setup = small_setup(config("ldp-fedavg", kLocal + "noise = \"secure\"\n", "", "", 1));
  privacy::Ledger one, two;
  const Last a = run(setup, one), b = run(setup, two);
  EXPECT_EQ(one.generator(), "secure");
  EXPECT_FALSE(at::equal(a.broadcast[0].value, b.broadcast[0].value));
}

TEST(LdpFedAvg, BatchesThatRecordsDrawNeedFarLessNoiseUnderReplace) {
  const auto setup = [](const std::string& batches) {
    return small_setup(
        "rounds = 3\n[data]\nclients = 3\n[federation]\nbatch = 5\nlocal_epochs = 2\n[method]\nname = \"ldp-fedavg\"\n"
        "batches = \"" +
        batches + "\"\n[privacy]\nepsilon = 4\ndelta = 1e-3\nadjacency = \"replace\"\n");
  };
  const auto multiplier = [&](const std::string& batches) {
    const privacy::Event event = setup(batches).plan_for(0).front().terms();
    return event.noise_scale / event.sensitivity;
  };
  EXPECT_LT(multiplier("allocated"), 0.7 * multiplier("disjoint"));
  privacy::Ledger ledger;
  run(setup("allocated"), ledger);
  for (const privacy::Event& event : ledger.events()) EXPECT_GT(event.batches, 1);
  EXPECT_LE(proven(ledger, "server", 0), 4.0);
  EXPECT_GT(proven(ledger, "server", 0), 3.9);
}

TEST(DpFedAvg, TheServerSeesAllAndTheClientsAreProtected) {
  const auto setup = small_setup(config("dp-fedavg", kCentral));
  privacy::Ledger ledger;
  run(setup, ledger);
  EXPECT_TRUE(std::isinf(proven(ledger, "server", 0)));
  EXPECT_LE(proven(ledger, "clients", 0), 5.0);
  EXPECT_GT(proven(ledger, "clients", 0), 4.9);
}

TEST(DpFedAvg, LearnsAtAGenerousBudget) {
  const auto setup = small_setup(
      config("dp-fedavg",
             "epsilon = 200\ndelta = 1e-3\nadjacency = \"add-remove\"\nunit = \"client\"\nobserver = \"clients\"\n"));
  privacy::Ledger ledger;
  EXPECT_GT(run(setup, ledger).rounds.back().evaluation->global_accuracy, 0.85);
}

TEST(DpFedAvg, PoissonCohortsAreAmplifiedAndFixedOnesAreNot) {
  const auto multiplier = [](const std::string& federation) {
    const auto setup = small_setup("rounds = 20\n[data]\nclients = 40\n[federation]\n" + federation + "[privacy]\n" +
                                   kCentral + "[method]\nname = \"dp-fedavg\"\n");
    const privacy::Event event = setup.plan_for(0)[1].terms();
    return event.noise_scale / event.sensitivity;
  };
  const double everyone = multiplier("cohort = 40\n");
  EXPECT_LT(multiplier("cohort = 4\nsampling = \"poisson\"\n"), 0.5 * everyone);
  const double fixed = multiplier("cohort = 4\n");
  EXPECT_GT(fixed, multiplier("cohort = 4\nsampling = \"poisson\"\n"));
  EXPECT_LT(fixed, everyone) << "nobody takes part in all 20 rounds";
  const double secret = multiplier("cohort = 4\nsampling = \"secret\"\n");
  EXPECT_LT(secret, fixed) << "whose members nobody knows";
  EXPECT_GT(secret, multiplier("cohort = 4\nsampling = \"poisson\"\n")) << "somebody else is there instead";
}

TEST(DpFedAvg, SecretCohortsOfFixedSizeArePaidForByEverybody) {
  const auto setup =
      small_setup("rounds = 5\n[data]\nclients = 20\n[federation]\ncohort = 3\nsampling = \"secret\"\n[privacy]\n" +
                  kCentral + "[method]\nname = \"dp-fedavg\"\n");
  privacy::Ledger ledger;
  run(setup, ledger);
  int releases = 0, updates = 0;
  for (const privacy::Event& event : ledger.events()) {
    if (event.what != "model") {
      ++updates;
      continue;
    }
    ++releases;
    EXPECT_EQ(event.mechanism, privacy::kCohortGaussianMechanism);
    EXPECT_EQ(event.client, privacy::kEveryone);
    EXPECT_DOUBLE_EQ(event.sampling_rate, 0.15);
  }
  EXPECT_EQ(releases, 5);
  EXPECT_EQ(updates, 15);
  EXPECT_LE(proven(ledger, "clients", 0), 5.0);
  EXPECT_GT(proven(ledger, "clients", 0), 4.9);
}

TEST(SecretCohorts, AreForMethodsThatCountOnThem) {
  EXPECT_USER_ERROR(small_setup("[federation]\ncohort = 2\nsampling = \"secret\"\n[method]\nname = \"fedavg\"\n"),
                    "federation.sampling");
}

TEST(DpFedAvg, OneClientMovesTheSumByNoMoreThanTheClippingBound) {
  const auto setup = small_setup(config("dp-fedavg", kCentral, "clip = 0.25\n"));
  EXPECT_THROW(small_setup(config("dp-fedavg", kCentral, "clip = 0\n")), UserError);
  const auto planned = setup.plan_for(0)[1];
  EXPECT_GE(planned.terms().sensitivity, 0.25);
  EXPECT_LT(planned.terms().sensitivity, 0.25 * 1.01);
}

TEST(DpFedAvg, TheBoundFollowsTheUpdatesNorms) {
  const auto clip_after = [](double start) {
    const auto setup = small_setup(
        config("dp-fedavg",
               "epsilon = 60\ndelta = 1e-3\nadjacency = \"add-remove\"\nunit = \"client\"\nobserver = \"public\"\n",
               fmt::format("clipping = \"adaptive\"\nclip = {}\nquantile_lr = 0.7\n", start), "", 15));
    privacy::Ledger ledger;
    const Last result = run(setup, ledger);
    EXPECT_LE(proven(ledger, "clients", 0), 60.0);
    return find_tensor(result.broadcast, "clip").item<double>();
  };
  EXPECT_GT(clip_after(1e-3), 1e-2);
  EXPECT_LT(clip_after(100.0), 10.0);
}

const std::string kInTurn =
    "rounds = 12\n[data]\nclients = 8\n[federation]\nlr = 0.2\ncohort = 2\nsampling = \"cyclic\"\n[privacy]\n";
const std::string kBanded = "[method]\nname = \"dp-fedavg\"\nnoise = \"banded\"\n";

TEST(BandedDpFedAvg, ParticipationsCostTheSameAndNoiseIsLess) {
  const auto banded = small_setup(kInTurn + kCentral + kBanded);
  const auto alone = small_setup(kInTurn + kCentral + "[method]\nname = \"dp-fedavg\"\n");
  const auto planned = banded.plan_for(0)[1], plain = alone.plan_for(0)[1];
  EXPECT_EQ(planned.times(), 3);
  EXPECT_EQ(planned.times(), plain.times());
  EXPECT_EQ(planned.terms().noise_scale / planned.terms().sensitivity,
            plain.terms().noise_scale / plain.terms().sensitivity);
  EXPECT_LT(planned.reach().noise_stddev, plain.reach().noise_stddev / 1.5) << "what is left of it in the model";
}

TEST(BandedDpFedAvg, ThePlanSaysWhatTheLedgerWillHold) {
  const auto setup = small_setup(kInTurn + kCentral + kBanded);
  privacy::Ledger ledger;
  run(setup, ledger);
  const auto planned = setup.plan_for(1)[1];
  privacy::Tally tally;
  tally.add(planned.terms(), planned.times());
  for (int64_t client = 0; client < 8; ++client) {
    EXPECT_NEAR(tally.proven(1e-3), proven(ledger, "clients", client), 1e-9);
  }
  EXPECT_LE(tally.proven(1e-3), 5.0);
  EXPECT_GT(tally.proven(1e-3), 4.9);
}

TEST(BandedDpFedAvg, IsResumedBitForBit) {
  const auto setup =
      changed(small_setup(kInTurn + kCentral + kBanded), [](auto& spec) { spec.record.checkpoint_every = 1; });
  privacy::Ledger ledger;
  const auto whole = run<EveryCheckpoint>(setup, ledger);
  ASSERT_EQ(whole.points.size(), 12U);
  privacy::Ledger second;
  Last resumed;
  const auto states = make_memory_store({});
  run_rounds(setup, *states, second, resumed, 1, whole.points[4]);
  ASSERT_EQ(whole.broadcast.size(), resumed.broadcast.size());
  for (size_t i = 0; i < whole.broadcast.size(); ++i) {
    EXPECT_TRUE(at::equal(whole.broadcast[i].value, resumed.broadcast[i].value)) << whole.broadcast[i].name;
  }
}

TEST(BandedDpFedAvg, LearnsWhereIndependentNoiseDoesNot) {
  const std::string privacy =
      "epsilon = 60\ndelta = 1e-3\nadjacency = \"add-remove\"\nunit = \"client\"\nobserver = \"clients\"\n";
  double banded = 0, alone = 0;
  for (int seed = 1; seed <= 5; ++seed) {
    const std::string settings = fmt::format("seed = {}\n", seed) +
                                 "rounds = 40\n[data]\nclients = 40\n[federation]\nlr = 0.2\ncohort = 4\nsampling = "
                                 "\"cyclic\"\neval_every = 40\n[privacy]\n";
    privacy::Ledger one, other;
    banded += run(small_setup(settings + privacy + kBanded), one).rounds.back().evaluation->global_accuracy / 5;
    alone += run(small_setup(settings + privacy + "[method]\nname = \"dp-fedavg\"\n"), other)
                 .rounds.back()
                 .evaluation->global_accuracy /
             5;
  }
  EXPECT_GT(banded, alone);
}

TEST(BandedDpFedAvg, SaysWhatItNeeds) {
  expect_refused(config("dp-fedavg", kCentral, "noise = \"banded\"\n"), "federation.sampling = \"cyclic\"");
  expect_refused(kInTurn + kCentral + kBanded + "band = 5\n", "method.band = 5");
  EXPECT_THROW(small_setup(kInTurn + kCentral + kBanded + "clipping = \"adaptive\"\n"), UserError);
  EXPECT_THROW(small_setup(kInTurn + kCentral + "[method]\nname = \"dp-fedavg\"\nband = 2\n"), UserError);
}

TEST(PrivateMethods, SayWhatTheyNeed) {
  expect_refused("rounds = 1\n[data]\nclients = 4\n[method]\nname = \"ldp-fedavg\"\n", "needs a [privacy] section");
  expect_refused(config("ldp-fedavg", kCentral), "privacy.unit = \"record\"");
  expect_refused(config("dp-fedavg", kLocal), "privacy.unit = \"client\"");
  expect_refused(config("dp-fedavg", kLocal + "unit = \"client\"\n"), "trusted");
}

}  // namespace
}  // namespace sotto::federation
