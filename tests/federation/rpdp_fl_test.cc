// Records with budgets of their own, realised by how often they are sampled.
#include "methods/dpsgd/sampling_curve.h"
#include "privacy/accounting/renyi.h"
#include "small_run.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cmath>

namespace sotto::federation {
namespace {

constexpr double kDelta = 1e-3;
const std::string kTerms = "epsilon = 5\ndelta = 1e-3\nadjacency = \"zero-out\"\n";

std::string config(const std::string& options, const std::string& privacy = kTerms,
                   const std::string& federation = "") {
  return fmt::format(
      "rounds = 10\n[data]\nclients = 4\n[federation]\nbatch = 15\nlr = 0.2\n{}[privacy]\n{}[method]\n"
      "name = \"rpdp-fl\"\n{}",
      federation, privacy, options);
}

struct Counted : RunSink {
  void upload(int64_t, int64_t, const privacy::Upload&) override {}
  void round(const RoundRecord& record) override {
    samples += record.samples;
    rounds.push_back(record);
  }
  void checkpoint(const Checkpoint&) override {}
  int64_t samples = 0;
  std::vector<RoundRecord> rounds;
};

std::vector<double> rates_of(const privacy::Event& event) {
  return nlohmann::json::parse(event.parameters).at("rates").get<std::vector<double>>();
}

// What a record that takes part at `rate` has spent after all of the planned releases.
double proven_at(const privacy::Channel& planned, double rate) {
  privacy::Event event = planned.terms();
  event.sampling_rate = rate;
  privacy::Tally tally;
  tally.add(event, planned.times());
  return tally.proven(kDelta);
}

TEST(RpdpFl, RatesFollowBudgetsAndEveryRecordKeepsItsOwn) {
  for (const char* adjacency : {"zero-out", "replace"}) {
    const auto setup = small_setup(config("record_budgets = [0.2, 1, 5]\nrecord_shares = [6, 3, 1]\n",
                                          fmt::format("epsilon = 5\ndelta = 1e-3\nadjacency = \"{}\"\n", adjacency)));
    const auto planned = setup.plan_for(0)[0];
    const auto rates = rates_of(planned.terms());
    ASSERT_EQ(rates.size(), 3U);
    EXPECT_LT(rates[0], rates[1]);
    EXPECT_LT(rates[1], rates[2]);
    EXPECT_EQ(planned.terms().sampling_rate, rates[2]) << "the row is for the most exposed";
    const double budgets[] = {0.2, 1, 5};
    for (size_t k = 0; k < 3; ++k) {
      EXPECT_LE(proven_at(planned, rates[k]), budgets[k]);
      EXPECT_GT(proven_at(planned, rates[k]), 0.98 * budgets[k]);
    }
    EXPECT_NEAR(planned.reach().bound, 60 * (0.6 * rates[0] + 0.3 * rates[1] + 0.1 * rates[2]), 1e-9)
        << "divided by what is declared, not by what was drawn";
  }
}

TEST(RpdpFl, TheLargestBudgetIsSampledAtTheBatchsRate) {
  const auto setup = small_setup(config("", kTerms + "budgets = [0.5, 5]\n"));
  EXPECT_NEAR(setup.plan_for(1)[0].terms().sampling_rate, 15.0 / 60, 15.0 / 60 * 2e-3);
  EXPECT_LT(setup.plan_for(0)[0].terms().sampling_rate, 15.0 / 60 / 2);
  const auto multiplier = [](const privacy::Event& event) { return event.noise_scale / event.sensitivity; };
  EXPECT_NEAR(multiplier(setup.plan_for(0)[0].terms()) / multiplier(setup.plan_for(1)[0].terms()), 1.0, 1e-9);
  EXPECT_EQ(setup.plan_for(0)[0].terms().steps, setup.plan_for(1)[0].terms().steps);
}

TEST(RpdpFl, ARecordsBudgetIsNeverAboveItsClients) {
  const auto setup = small_setup(config("record_budgets = [0.5, 8]\n", kTerms + "budgets = [1, 4]\n"));
  const auto of_client = [&](int64_t client) { return rates_of(setup.plan_for(client)[0].terms()); };
  EXPECT_EQ(of_client(0)[0], of_client(1)[0]);
  EXPECT_LT(of_client(0)[1], of_client(1)[1]);
  EXPECT_LE(proven_at(setup.plan_for(0)[0], of_client(0)[1]), 1.0);
  EXPECT_LE(proven_at(setup.plan_for(1)[0], of_client(1)[1]), 4.0);
}

TEST(RpdpFl, TheLedgerIsThePlanAndKeepsEveryBudget) {
  const auto setup = small_setup(config("record_budgets = [0.5, 8]\n", kTerms + "budgets = [1, 4]\n", "cohort = 3\n"));
  privacy::Ledger ledger;
  run<Counted>(setup, ledger);
  const auto tallies = ledger.tallies("server");
  for (int64_t client = 0; client < 4; ++client) {
    const auto planned = setup.plan_for(client)[0];
    EXPECT_EQ(tallies.at(client).proven(kDelta), proven_at(planned, planned.terms().sampling_rate));
    EXPECT_LE(tallies.at(client).proven(kDelta), setup.spec().privacy->budget_of(client));
    EXPECT_GT(tallies.at(client).proven(kDelta), 0.98 * setup.spec().privacy->budget_of(client));
  }
  for (const auto& event : ledger.events()) {
    EXPECT_EQ(rates_of(event), rates_of(setup.plan_for(event.client)[0].terms()));
  }
}

// Fewer participations leave more of a budget for each: the rate may rise, and the budget is met all the same.
TEST(RpdpFl, WhoTakesPartSeldomIsSampledMoreOften) {
  const auto setup = small_setup(config("", kTerms, "cohort = 2\n"));
  for (int64_t a = 0; a < 4; ++a) {
    for (int64_t b = 0; b < 4; ++b) {
      const auto often = setup.plan_for(a)[0], seldom = setup.plan_for(b)[0];
      if (often.times() <= seldom.times()) continue;
      EXPECT_LT(often.terms().sampling_rate, seldom.terms().sampling_rate);
    }
  }
}

// 240 records, 10 rounds of 4 steps: as many take part as the rates and the shares of the budgets say.
TEST(RpdpFl, RecordsTakePartAtTheirRates) {
  for (const char* options : {"", "record_budgets = [0.2, 5]\nrecord_shares = [3, 1]\n"}) {
    const auto setup = small_setup(config(options));
    const auto planned = setup.plan_for(0)[0];
    const auto rates = rates_of(planned.terms());
    const double share = rates.size() == 1 ? 1.0 : 0.75;
    const double mean = share * rates[0] + (1 - share) * rates.back();
    const double draws = 240.0 * 4 * 10;
    ASSERT_EQ(planned.terms().steps, 4);
    const double spread = std::sqrt(mean / draws + share * (1 - share) * std::pow(rates.back() - rates[0], 2) / 240);
    privacy::Ledger ledger;
    EXPECT_NEAR(static_cast<double>(run<Counted>(setup, ledger).samples) / draws, mean, 5 * spread) << options;
  }
}

TEST(RpdpFl, NoiseMayBeSetAndRatesFollow) {
  const auto rate = [](const char* options) {
    return small_setup(config(options)).plan_for(0)[0].terms().sampling_rate;
  };
  EXPECT_LT(rate("noise_multiplier = 1\n"), rate("noise_multiplier = 2\n"));
  EXPECT_EQ(rate("noise_multiplier = 1000\n"), 1.0);
}

TEST(RpdpFl, LearnsAtAGenerousBudget) {
  const auto setup = small_setup(config("", "epsilon = 50\ndelta = 1e-3\nadjacency = \"zero-out\"\n"));
  privacy::Ledger ledger;
  EXPECT_GT(run<Counted>(setup, ledger).rounds.back().evaluation->global_accuracy, 0.85);
}

TEST(RpdpFl, RefusesWhatMeansNothing) {
  expect_refused(config("record_shares = [1, 2]\n"), "record_shares");
  expect_refused(config("record_budgets = [1]\nrecord_shares = [1, 2]\n"), "one share per budget");
  expect_refused(config("record_budgets = [1, -2]\n"), "record_budgets");
  expect_refused(config("noise_multiplier = -1\n"), "noise_multiplier");
  expect_refused(config("batches = \"disjoint\"\n"), "batches");
}

// A record's budget goes by its row: one more at the front would deal half of the others another one.
TEST(RpdpFl, UnderAddRemoveRecordsHaveOneBudget) {
  const std::string terms = "epsilon = 5\ndelta = 1e-3\nadjacency = \"add-remove\"\nrecords = 60\n";
  expect_refused(config("record_budgets = [0.5, 4]\n", terms), "method.record_budgets");
  EXPECT_EQ(small_setup(config("record_budgets = [4]\n", terms)).plan_for(0).size(), 1U);
}

// ε(q) = e^{aq+b} + c through simulated costs, and its inverse.
TEST(SamplingCurve, FollowsTheCostsThatItIsFittedTo) {
  constexpr double kMultiplier = 4;
  constexpr int64_t kSteps = 200;
  const methods::SamplingCurve curve = methods::fit_sampling_curve(kMultiplier, kSteps, kDelta);
  for (const double rate : {0.1, 0.4, 0.8, 1.0}) {
    const std::vector<privacy::Steps> steps = {{privacy::Step::gaussian(kMultiplier, rate), kSteps}};
    const double cost =
        privacy::RenyiCurve(steps).epsilon(kDelta, privacy::Orders::kIntegersTo64, privacy::Conversion::kTight).value;
    EXPECT_NEAR(curve.epsilon(rate), cost, 0.25 * cost) << rate;
    EXPECT_NEAR(curve.rate(curve.epsilon(rate)), rate, 1e-9);
  }
  EXPECT_EQ(curve.rate(1e9), 1.0);
  EXPECT_GE(curve.rate(1e-9), 0.01);
  EXPECT_LT(curve.rate(1e-9), 0.05);
}

TEST(RpdpFl, AsPrintedClaimsTheBudgetAndProvesWhatTheLedgerSays) {
  auto setup = small_setup(config("variant = \"paper\"\n"));
  privacy::Ledger ledger;
  run(setup, ledger);
  const privacy::Tally tally = ledger.tallies("server").at(0);
  EXPECT_EQ(tally.claimed(setup.spec().privacy->delta), setup.spec().privacy->budget_of(0));
  EXPECT_TRUE(std::isfinite(tally.proven(setup.spec().privacy->delta)));
}

}  // namespace
}  // namespace sotto::federation
