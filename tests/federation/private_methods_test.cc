// What private methods promise, tried on a small federation.
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

TEST(LdpFedAvg, SecureNoiseIsRecordedAndNeverTheSame) {
  const auto setup = small_setup(config("ldp-fedavg", kLocal + "noise = \"secure\"\n", "", "", 1));
  privacy::Ledger one, two;
  const Last a = run(setup, one), b = run(setup, two);
  EXPECT_EQ(one.generator(), "secure");
  EXPECT_FALSE(at::equal(a.broadcast[0].value, b.broadcast[0].value));
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
               "epsilon = 100\ndelta = 1e-3\nadjacency = \"add-remove\"\nunit = \"client\"\nobserver = \"public\"\n",
               fmt::format("clipping = \"adaptive\"\nclip = {}\nquantile_lr = 0.7\n", start), "", 15));
    privacy::Ledger ledger;
    const Last result = run(setup, ledger);
    EXPECT_LE(proven(ledger, "clients", 0), 100.0);
    return find_tensor(result.broadcast, "clip").item<double>();
  };
  EXPECT_GT(clip_after(1e-3), 1e-2);
  EXPECT_LT(clip_after(100.0), 10.0);
}

TEST(PrivateMethods, SayWhatTheyNeed) {
  expect_refused("rounds = 1\n[data]\nclients = 4\n[method]\nname = \"ldp-fedavg\"\n", "needs a [privacy] section");
  expect_refused(config("ldp-fedavg", kCentral), "privacy.unit = \"record\"");
  expect_refused(config("dp-fedavg", kLocal), "privacy.unit = \"client\"");
  expect_refused(config("dp-fedavg", kLocal + "unit = \"client\"\n"), "trusted");
}

}  // namespace
}  // namespace sotto::federation
