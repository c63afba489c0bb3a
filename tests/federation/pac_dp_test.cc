// PAC-DP and its local baselines: schedule, bounds, budgets, and the two accountings.
#include "methods/dpsgd/pac_dp.h"

#include "privacy/dpsgd/clipper.h"
#include "small_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <numbers>

namespace sotto::federation {
namespace {

using methods::clip_schedule;
using ::testing::HasSubstr;

std::string config(const std::string& method, const std::string& privacy, const std::string& more = "",
                   int rounds = 10) {
  return fmt::format(
      "rounds = {}\n[data]\nclients = 4\n[federation]\nbatch = 16\nlr = 0.2\n[privacy]\ndelta = 1e-5\n{}{}[method]\n"
      "name = {}\n",
      rounds, privacy, more, method);
}

const std::string kReplace = "epsilon = 1\nadjacency = \"replace\"\n";
const std::string kCurve = "\"pac-dp\"\ncurve = \"paper-mnist\"";

double bound_of(const privacy::Event& event) {
  return event.sensitivity / (event.neighbours.adjacency == privacy::Adjacency::kAddRemove ? 1.0 : 2.0);
}

TEST(ClipSchedule, StaysAtOneAndThenFallsAlongACosine) {
  for (int64_t round = 1; round <= 15; ++round) EXPECT_EQ(clip_schedule(round, 25, 0.6, 0.1), 1.0) << round;
  EXPECT_EQ(clip_schedule(16, 25, 0.6, 0.1), 1.0) << "the cosine begins at one";
  EXPECT_NEAR(clip_schedule(21, 25, 0.6, 0.1), 0.1 + 0.9 * 0.5, 1e-12) << "half way";
  EXPECT_NEAR(clip_schedule(25, 25, 0.6, 0.1), 0.1 + 0.45 * (1 + std::cos(0.9 * std::numbers::pi)), 1e-12);
  for (int64_t round = 2; round <= 25; ++round) {
    EXPECT_LE(clip_schedule(round, 25, 0.6, 0.1), clip_schedule(round - 1, 25, 0.6, 0.1));
    EXPECT_GE(clip_schedule(round, 25, 0.6, 0.1), 0.1);
  }
}

TEST(ClipSchedule, AtItsCorners) {
  EXPECT_EQ(clip_schedule(1, 1, 0.6, 0.1), 1.0) << "a single round";
  EXPECT_EQ(clip_schedule(1, 3, 0.0, 0.1), 1.0) << "no plateau: the cosine begins at once";
  EXPECT_LT(clip_schedule(2, 3, 0.0, 0.1), 1.0);
  EXPECT_EQ(clip_schedule(10, 10, 0.9999, 0.1), 1.0) << "nothing but plateau";
  EXPECT_EQ(clip_schedule(10, 10, 0.2, 1.0), 1.0) << "a least scale of one is no schedule";
}

// The figures of the method's page: 12 participations of 5 epochs, δ = 1e-5, replace.
struct Printed {
  double epsilon, multiplier, really;
};

class PaperAccounting : public ::testing::TestWithParam<Printed> {};

TEST_P(PaperAccounting, ClaimsTheBudgetAndReallySpendsMore) {
  const auto [epsilon, multiplier, really] = GetParam();
  const auto setup = changed(small_setup(config(kCurve + "\nvariant = \"paper\"", kReplace)),
                             [](config::RunSpec& spec) { spec.federation.local_epochs = 5; });
  const privacy::Channel release =
      setup.method().plan(setup.public_context(), {.records = 60, .participations = 12, .epsilon = epsilon}).front();
  EXPECT_NEAR(release.terms().claim.multiplier / multiplier, 1.0, 0.01);
  EXPECT_NEAR(release.terms().noise_scale / release.terms().sensitivity * 2, release.terms().claim.multiplier, 1e-6)
      << "noise z·C against a sensitivity of 2C";
  privacy::Tally tally;
  tally.add(release.terms(), 12);
  EXPECT_LE(tally.claimed(1e-5), epsilon * (1 + 1e-9));
  EXPECT_GT(tally.claimed(1e-5), epsilon * 0.999);
  EXPECT_NEAR(tally.proven(1e-5) / really, 1.0, 0.01);
}

INSTANTIATE_TEST_SUITE_P(Page, PaperAccounting,
                         ::testing::Values(Printed{0.1, 48.4, 1.21}, Printed{1.0, 17.0, 3.94},
                                           Printed{10.0, 1.97, 63.5}));

TEST(SoundAccounting, NeedsTheNoiseOfThePage) {
  const auto setup =
      changed(small_setup(config(kCurve, kReplace)), [](config::RunSpec& spec) { spec.federation.local_epochs = 5; });
  for (const auto& [epsilon, needed] : std::map<double, double>{{0.1, 476.0}, {1.0, 57.8}}) {
    const privacy::Channel release =
        setup.method().plan(setup.public_context(), {.records = 60, .participations = 12, .epsilon = epsilon}).front();
    EXPECT_NEAR(2 * release.terms().noise_scale / release.terms().sensitivity / needed, 1.0, 0.005);
    privacy::Tally tally;
    tally.add(release.terms(), 12);
    EXPECT_LE(tally.proven(1e-5), epsilon);
    EXPECT_GT(tally.proven(1e-5), 0.99 * epsilon);
  }
}

// Two records that pull a model in opposite directions: exchanging one for the other moves the clipped sum by 2C.
TEST(Sensitivity, OfAReplacedRecordIsTwiceTheBound) {
  const auto setup = small_setup(config("\"fixed\"", kReplace));
  models::ModelOptions options;
  options.name = "logistic";
  RandomStream init(1, "model-init");
  const auto model = models::make_model(options, {{6}, 2}, init);
  const models::FlatParameters flat(*model);
  constexpr double kBound = 0.5;
  privacy::PerExampleClipper clipper(*model, flat, {.bound = kBound});
  const at::Tensor x = at::full({3, 6}, 10.0);
  clipper.sum(x, at::tensor({0, 1, 0}, at::kLong));
  const at::Tensor before = flat.gradient().clone();
  clipper.sum(x, at::tensor({0, 1, 1}, at::kLong));
  const double moved = (flat.gradient() - before).norm().item<double>();
  EXPECT_NEAR(moved, 2 * kBound, 1e-5);
  EXPECT_GT(moved, kBound * 1.9) << "the printed sensitivity C is too small";
  clipper.sum(x.slice(0, 0, 2), at::tensor({0, 1}, at::kLong));
  EXPECT_NEAR((flat.gradient() - before).norm().item<double>(), kBound, 1e-5) << "removal moves it by C";
}

TEST(PacDp, EveryClientClipsByItsBudgetAndTheRound) {
  const auto setup = small_setup(config(kCurve, kReplace + "budgets = [0.1, 1]\n"));
  privacy::Ledger ledger;
  run(setup, ledger);
  const auto paper = [](double e) { return -5.5235 * e * e + 12.0719 * e + 1.4004; };
  std::map<double, int> seen;
  for (const privacy::Event& event : ledger.events()) {
    const double budget = setup.spec().privacy->budget_of(event.client);
    const double wanted = paper(budget) * clip_schedule(event.round, 10, 0.6, 0.1);
    EXPECT_NEAR(bound_of(event) / wanted, 1.0, 3e-3) << "round " << event.round << ", client " << event.client;
    ++seen[budget];
  }
  EXPECT_EQ(seen, (std::map<double, int>{{0.1, 20}, {1.0, 20}}));
}

TEST(PacDp, ChangingBoundsAreOneKindOfSpending) {
  const auto setup = small_setup(config(kCurve + "\nbatches = \"poisson\"", kReplace));
  privacy::Ledger ledger;
  run(setup, ledger);
  const privacy::Event first = ledger.events().front();
  privacy::Tally planned;
  planned.add(first, 10);
  for (const auto& [client, tally] : ledger.tallies("server")) {
    EXPECT_TRUE(tally.within(planned)) << client;
    EXPECT_LE(tally.proven(1e-5), 1.0);
    EXPECT_GT(tally.proven(1e-5), 0.99);
  }
}

TEST(PacDp, AClientAbstainsExactlyWhenItsBudgetIsSpent) {
  const auto setup = small_setup(config(kCurve, kReplace));
  privacy::Ledger ledger;
  const Last result = run(setup, ledger);
  EXPECT_TRUE(result.rounds.back().abstained.empty()) << "the last planned release is affordable";
  privacy::Event more = ledger.events().front();
  more.round = 11;
  EXPECT_THROW(ledger.spend(more), privacy::BudgetSpent) << "and not one more";
}

TEST(PacDp, PaperVariantIsHeldToItsClaimAndTheSummaryTellsBoth) {
  const auto setup = small_setup(config(kCurve + "\nvariant = \"paper\"", kReplace));
  privacy::Ledger ledger;
  const Last result = run(setup, ledger);
  EXPECT_TRUE(result.rounds.back().abstained.empty());
  const privacy::Guarantee spent = ledger.tallies("server").at(0).guarantee(1e-5);
  EXPECT_LE(spent.claimed, 1.0 + 1e-9);
  EXPECT_GT(spent.proven, 1.5);
}

TEST(PacDp, TheCurveIsPartOfTheSpecAndNotItsFile) {
  const auto spec = config::parse_run_spec(config(kCurve, kReplace), "a.toml", {});
  EXPECT_THAT(spec.method_options, HasSubstr("quadratic"));
  const auto again = config::parse_run_spec(spec.to_toml(), "b.toml", {});
  EXPECT_EQ(spec.hash(), again.hash());
  const auto constant = config::parse_run_spec(
      config("\"pac-dp\"\ncurve = { family = \"constant\", coefficients = [0.25] }", kReplace), "c.toml", {});
  EXPECT_NE(spec.hash(), constant.hash());
}

TEST(PacDp, AConstantCurveWithoutScheduleIsTheFixedThreshold) {
  const auto train = [](const std::string& method) {
    privacy::Ledger ledger;
    return run(small_setup(config(method, kReplace, "", 3)), ledger).broadcast;
  };
  const NamedTensors curve =
      train("\"pac-dp\"\nleast_scale = 1.0\ncurve = { family = \"constant\", coefficients = [0.25] }");
  const NamedTensors fixed = train("\"fixed\"\nclip = 0.25");
  ASSERT_EQ(curve.size(), fixed.size());
  for (size_t i = 0; i < curve.size(); ++i) EXPECT_TRUE(at::equal(curve[i].value, fixed[i].value)) << curve[i].name;
}

TEST(PacDp, QuietClientsCanCountMore) {
  const auto setup = small_setup(
      config(kCurve + "\nweights = \"noise\"", kReplace + "budgets = [0.1, 1]\n", "[record]\nuploads = true\n", 1));
  privacy::Ledger ledger;
  const Last result = run(setup, ledger);
  ASSERT_EQ(result.uploads.size(), 4U);
  std::map<double, double> weight;
  std::map<double, double> noise;
  for (const privacy::Event& event : ledger.events()) {
    const double budget = setup.spec().privacy->budget_of(event.client);
    noise[budget] = event.noise_scale;
    weight[budget] = find_tensor(result.uploads[static_cast<size_t>(event.client)], "records").item<double>();
  }
  EXPECT_NEAR(weight[1.0] / weight[0.1], std::pow(noise[0.1] / noise[1.0], 2), 1e-2 * weight[1.0] / weight[0.1]);
}

TEST(Aqc, TheNextRoundsBoundIsTheMedianOfTheCohortsNorms) {
  const std::string generous = "epsilon = 500\nadjacency = \"zero-out\"\n";
  for (const double start : {1e-3, 100.0}) {
    const auto setup = small_setup(config(fmt::format("\"aqc\"\nclip = {}", start), generous, "", 2));
    privacy::Ledger ledger;
    run(setup, ledger);
    for (const privacy::Event& event : ledger.events()) {
      if (event.round == 1) continue;
      const double bound = nlohmann::json::parse(event.parameters)["groups"][0]["sensitivity"];
      EXPECT_GT(bound, 0.05) << "gradients of this model are of order one, whatever the first bound";
      EXPECT_LT(bound, 20.0);
    }
  }
}

TEST(Aqc, AsPrintedTheMedianHasNoNoiseAndNothingIsProven) {
  const auto setup = small_setup(config("\"aqc\"\nvariant = \"paper\"", kReplace, "", 2));
  privacy::Ledger ledger;
  run(setup, ledger);
  for (const privacy::Event& event : ledger.events()) {
    EXPECT_NE(event.why_unproven, "");
    const auto groups = nlohmann::json::parse(event.parameters)["groups"];
    EXPECT_GT(groups[0]["stddev"].get<double>(), 0);
    EXPECT_EQ(groups[1]["stddev"].get<double>(), 0);
  }
}

TEST(CgmMedian, AsPrintedHasThePapersNoiseAndAndrewsUpdate) {
  const auto noise = [](const std::string& method) {
    const auto setup = small_setup(config(method + "\nvariant = \"paper\"\nclip = 1", kReplace, "", 1));
    const methods::ClientFacts client = setup.facts_of(0);
    return setup.method().plan(setup.public_context(), client).front().terms();
  };
  const privacy::Event fixed = noise("\"fixed\""), median = noise("\"cgm-median\"");
  EXPECT_EQ(median.why_unproven, "");
  EXPECT_NEAR(median.noise_scale / median.sensitivity, fixed.noise_scale / fixed.sensitivity, 1e-3);
  EXPECT_EQ(median.claim, fixed.claim);
}

TEST(PacDp, WithoutAScheduleTheBoundStays) {
  for (int64_t round = 1; round <= 25; ++round) EXPECT_EQ(methods::clip_schedule(round, 25, 1.0, 0.1), 1.0);
  EXPECT_LT(methods::clip_schedule(25, 25, 0.6, 0.1), 0.2);
}

TEST(BudgetShares, AreDrawnBySeedAndInProportion) {
  const auto spec = config::parse_run_spec(
      config(kCurve, kReplace + "budgets = [0.05, 0.1, 1]\nbudget_shares = [0.6, 0.3, 0.1]\n"), "a.toml", {});
  std::map<double, int> count;
  for (int64_t client = 0; client < 10000; ++client) ++count[spec.privacy->budget_of(client)];
  EXPECT_NEAR(count[0.05], 6000, 200);
  EXPECT_NEAR(count[0.1], 3000, 200);
  EXPECT_NEAR(count[1.0], 1000, 150);
  const auto other = config::parse_run_spec(
      "seed = 2\n" + config(kCurve, kReplace + "budgets = [0.05, 0.1, 1]\nbudget_shares = [0.6, 0.3, 0.1]\n"), "a.toml",
      {});
  int same = 0;
  for (int64_t client = 0; client < 1000; ++client) {
    same += spec.privacy->budget_of(client) == other.privacy->budget_of(client) ? 1 : 0;
  }
  EXPECT_LT(same, 600) << "another seed, other draws";
}

TEST(PacDp, BadSettingsGetOneLine) {
  expect_refused(config("\"pac-dp\"", kReplace), "method.curve has no default");
  expect_refused(config("\"pac-dp\"\ncurve = \"nowhere.json\"", kReplace), "nowhere.json");
  expect_refused(config(kCurve + "\nplateau = 1.1", kReplace), "method.plateau");
  expect_refused(config(kCurve + "\nvariant = \"paper\"\nbatches = \"poisson\"", kReplace), "disjoint batches");
  expect_refused(config(kCurve, kReplace + "budgets = [1, 2]\nbudget_shares = [1]\n"), "one share per budget");
}

}  // namespace
}  // namespace sotto::federation
