// LaDP-FL and what it is compared with: what is sent, what it costs, how loud it is, what the paper's form leaks.
#include "audit/method_release.h"
#include "methods/dpsgd/noisy_model.h"
#include "methods/parts/local_trainer.h"
#include "privacy/accounting/gaussian.h"
#include "small_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <map>

namespace sotto::federation {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr double kDelta = 1e-3;
constexpr int kClients = 4;

std::string config(const std::string& method, const std::string& options = "", int rounds = 6,
                   const std::string& federation = "") {
  return fmt::format(
      "rounds = {}\n[data]\nclients = {}\n[federation]\nlr = 0.2\n{}{}[privacy]\nepsilon = 2\ndelta = {}\n"
      "adjacency = \"zero-out\"\n[record]\nuploads = true\n[method]\nname = \"{}\"\n{}",
      rounds, kClients, federation.find("batch") == std::string::npos ? "batch = 20\n" : "", federation, kDelta, method,
      options);
}

const std::string kPaper = "variant = \"paper\"\n";

privacy::Guarantee guarantee(const privacy::Ledger& ledger, int64_t client) {
  const privacy::Tally tally = ledger.tallies("server").at(client);
  return {.claimed = tally.claimed(kDelta), .proven = tally.proven(kDelta), .why_unproven = {}};
}

std::vector<std::string> names(const NamedTensors& tensors) {
  std::vector<std::string> all;
  for (const auto& tensor : tensors) all.push_back(tensor.name);
  return all;
}

std::map<std::string, double> stddevs(const privacy::Event& event) {
  const json parameters = json::parse(event.parameters);
  std::map<std::string, double> all;
  for (const json& group : parameters["groups"]) all[group["group"]] = group["stddev"];
  return all;
}

TEST(LadpFl, SpendsItsBudgetWhateverTheShares) {
  for (const char* options :
       {"", "bounds = \"equal\"\n", "bounds = \"probe\"\nestimate = true\nkl_exponent = 4\n", "estimate = false\n",
        "least_signal = 0.5\nbounds = \"equal\"\n", "clipping = \"layers\"\n"}) {
    const auto setup = small_setup(config("ladp-fl", options));
    privacy::Ledger ledger;
    run(setup, ledger);
    for (int64_t client = 0; client < kClients; ++client) {
      EXPECT_LE(guarantee(ledger, client).proven, 2.0) << options;
      EXPECT_GT(guarantee(ledger, client).proven, 1.98) << options;
      EXPECT_EQ(guarantee(ledger, client).claimed, guarantee(ledger, client).proven);
    }
  }
}

TEST(LadpFl, LearnsAtAGenerousBudget) {
  const auto setup = changed(small_setup(config("ladp-fl", "clip = 4\n", 10)),
                             [](config::RunSpec& spec) { spec.privacy->epsilon = 1000; });
  privacy::Ledger ledger;
  EXPECT_GT(run(setup, ledger).rounds.back().evaluation->global_accuracy, 0.85);
}

TEST(LadpFl, WithoutEstimatesAndBySizeItsNoiseIsThatOfFullDp) {
  privacy::Ledger layered, full;
  const Last ladp = run(small_setup(config("ladp-fl", "estimate = false\n")), layered);
  const Last baseline = run(small_setup(config("full-dp")), full);
  EXPECT_NEAR(ladp.rounds[0].noise_norm / baseline.rounds[0].noise_norm, 1.0, 2e-3) << "margins grow with layers";
  const auto group = stddevs(full.events().front()).begin()->second;
  for (const auto& [layer, stddev] : stddevs(layered.events().front())) {
    EXPECT_NEAR(stddev / group, 1.0, 2e-3) << layer;
  }
}

struct LayerNorms {
  std::string small, large;
  double between = 0;
};

// Of the model that a run starts from, which has two layers.
LayerNorms norms_of_layers(const Setup& setup) {
  methods::LocalTrainer start(setup.public_context());
  std::map<std::string, double> norms;
  for (const auto& [name, value] : start.shared()) {
    norms[name.substr(0, name.rfind('.'))] += value.square().sum().item<double>();
  }
  EXPECT_EQ(norms.size(), 2U);
  const auto small = norms.begin()->second < norms.rbegin()->second ? *norms.begin() : *norms.rbegin();
  const auto large = norms.begin()->second < norms.rbegin()->second ? *norms.rbegin() : *norms.begin();
  return {small.first, large.first, (std::sqrt(small.second) + std::sqrt(large.second)) / 2};
}

TEST(LadpFl, LayersThatAreNotChosenAreNotSentAndStayAsTheyWere) {
  auto setup = small_setup(config("ladp-fl", "estimate = false\n"));
  methods::LocalTrainer start(setup.public_context());
  const auto [small, large, least_norm] = norms_of_layers(setup);
  setup = small_setup(config("ladp-fl", fmt::format("estimate = false\nleast_norm = {}\n", least_norm), 1));
  privacy::Ledger ledger;
  const Last last = run(setup, ledger);
  for (const NamedTensors& upload : last.uploads) {
    EXPECT_THAT(names(upload), ElementsAre(large + ".weight", large + ".bias", "records"));
  }
  for (const auto& [name, value] : start.shared()) {
    const bool same = value.equal(find_tensor(last.broadcast, name));
    EXPECT_EQ(same, name.starts_with(small)) << name;
  }
  privacy::Ledger all;
  const Last full = run(small_setup(config("full-dp", "", 1)), all);
  EXPECT_LT(last.rounds[0].upload_bytes, full.rounds[0].upload_bytes);
  EXPECT_EQ(stddevs(ledger.events().front()).size(), 1U);
  EXPECT_GT(guarantee(ledger, 0).proven, 1.98) << "what is sent has the whole budget";
}

TEST(LadpFl, NoLayerChosenIsRefusedBeforeItStarts) {
  expect_refused(config("ladp-fl", "least_norm = 1e6\n"), "has weights of norm `least_norm`");
  expect_refused(config("ladp-fl", "layers = [\"conv9\"]\n"), "there are fc1, head");
}

TEST(LadpFl, TrafficIsThatOfFullDpAtMost) {
  privacy::Ledger one, two;
  const Last ladp = run(small_setup(config("ladp-fl")), one), full = run(small_setup(config("full-dp")), two);
  for (size_t i = 0; i < ladp.rounds.size(); ++i) {
    EXPECT_EQ(ladp.rounds[i].upload_bytes, full.rounds[i].upload_bytes);
    EXPECT_EQ(ladp.rounds[i].upload_bytes, kClients * ((6 * 8 + 8 + 8 * 3 + 3) * 4 + 8));
  }
}

// Other records, the same broadcast and the same earlier releases: the same choices.
TEST(LadpFl, ChoicesDependOnNothingPrivate) {
  const std::string options = "estimate = true\nbounds = \"probe\"\nleast_signal = 0.01\n";
  const auto setup = small_setup(config("ladp-fl", options));
  auto other = small_setup(config("ladp-fl", options));
  other.dataset().train.x.mul_(-7).add_(1);
  const auto client = setup.method().make_client(setup.client_context());
  const auto neighbour = other.method().make_client(other.client_context());
  const methods::Broadcast broadcast = setup.method().make_server(setup.public_context())->open();
  privacy::Ledger ledger, other_ledger;
  privacy::PrivateState state, other_state;
  const auto step = [&](methods::ClientMethod& method, const federation::Setup& where, privacy::Ledger& to,
                        int64_t round, privacy::PrivateState& kept) {
    const data::Shard shard = where.partition().shard(0);
    methods::StepContext context{.seed = 1, .release = {.ledger = to, .round = round}};
    context.own = where.facts_of(0);
    context.own.participations = 6;
    method.step(broadcast, shard, kept, context);
    return stddevs(to.events().back());
  };
  EXPECT_EQ(step(*client, setup, ledger, 1, state), step(*neighbour, other, other_ledger, 1, other_state));
  ASSERT_FALSE(state.empty());
  const auto after = step(*client, setup, ledger, 2, state);
  EXPECT_NE(after, step(*neighbour, other, other_ledger, 2, other_state)) << "their own releases differed";
  // With what the first client has released, the second one chooses as the first one does.
  privacy::PrivateState remembered;
  {
    privacy::Ledger unused;
    privacy::PrivateState first;
    step(*client, setup, unused, 1, first);
    remembered = first;
  }
  privacy::Ledger fresh;
  EXPECT_EQ(step(*neighbour, other, fresh, 2, remembered), after);
}

TEST(LadpFl, EstimatesMoveNoiseBetweenLayers) {
  const auto setup = small_setup(config("ladp-fl", "estimate = true\nkl_exponent = 4\n"));
  privacy::Ledger ledger;
  run(setup, ledger);
  const auto events = ledger.events();
  EXPECT_NE(stddevs(events.front()), stddevs(events.back()));
  const auto none = small_setup(config("ladp-fl", "estimate = true\nkl_exponent = 0\n"));
  privacy::Ledger constant;
  run(none, constant);
  EXPECT_EQ(stddevs(constant.events().front()), stddevs(constant.events().back()));
}

TEST(LadpFl, TheNumberOfThreadsDoesNotChangeTheChoices) {
  const auto setup = small_setup(config("ladp-fl", "estimate = true\nkl_exponent = 2\nbounds = \"probe\"\n", 4));
  privacy::Ledger one, two;
  const Last alone = run(setup, one, 1), together = run(setup, two, 2);
  EXPECT_EQ(one.events(), two.events());
  for (const auto& [name, value] : alone.broadcast) EXPECT_TRUE(value.equal(find_tensor(together.broadcast, name)));
}

TEST(LadpFl, WeightDecayWouldMoveWhatIsFrozen) {
  expect_refused(config("ladp-fl", "", 6, "weight_decay = 0.1\n"), "federation.weight_decay");
}

TEST(LadpFl, OptionsOfOneVariantAreRefusedInTheOther) {
  expect_refused(config("ladp-fl", "reported_norm = 3\n"), "only a paper's noise is reported");
  expect_refused(config("full-dp", "reported_norm = 3\n"), "only a paper's noise is reported");
  expect_refused(config("ladp-fl", kPaper, 6, "optimizer = \"adam\"\n"), "use optimizer = \"sgd\"");
  expect_refused(config("ladp-fl", kPaper, 6, "momentum = 0.9\n"), "use optimizer = \"sgd\"");
  expect_refused(config("ladp-fl", "kl_least = 2\n"), "kl_bound");
}

class Schedules : public ::testing::TestWithParam<const char*> {};

TEST_P(Schedules, SpendTheSameBudgetAsFullDp) {
  for (const char* cohort : {"batch = 1000\n", "batch = 1000\ncohort = 2\n"}) {
    const auto setup = small_setup(config(GetParam(), "", 8, cohort));
    privacy::Ledger ledger;
    const Last last = run(setup, ledger);
    for (const RoundRecord& round : last.rounds) EXPECT_TRUE(round.abstained.empty()) << GetParam();
    for (int64_t client = 0; client < kClients; ++client) {
      if (setup.participations_of(client) == 0) continue;
      EXPECT_LE(guarantee(ledger, client).proven, 2.0 * (1 + 1e-9));
      EXPECT_GT(guarantee(ledger, client).proven, 1.98);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Baselines, Schedules,
                         ::testing::Values("full-dp", "time-varying-dp", "dpa-ldp", "sensitive-dp-style", "adap-ldp"),
                         [](const auto& test) {
                           std::string name = test.param;
                           std::erase(name, '-');
                           return name;
                         });

std::vector<double> multipliers(const std::string& method, const std::string& options) {
  const auto setup = small_setup(config(method, options, 8));
  privacy::Ledger ledger;
  run(setup, ledger);
  std::vector<double> all;
  for (const privacy::Event& event : ledger.events()) {
    if (event.client == 0) all.push_back(event.noise_scale / event.sensitivity);
  }
  return all;
}

TEST(SchedulesAsPrinted, AreTheFormulasTheyPrint) {
  const auto decaying = multipliers("time-varying-dp", "decay = 0.25\n");
  ASSERT_EQ(decaying.size(), 8U);
  for (size_t i = 1; i < 8; ++i) EXPECT_NEAR(decaying[i] / decaying[i - 1], std::pow(0.25, 1.0 / 8), 1e-6);
  const auto growing = multipliers("dpa-ldp", "growth = 2\n");
  for (size_t i = 1; i < 8; ++i) {
    const auto x = static_cast<double>(i);
    EXPECT_NEAR(std::pow(growing[i - 1] / growing[i], 2), std::pow((x + 0.5) / (x - 0.5), 2), 1e-6);
  }
  for (const double multiplier : multipliers("full-dp", "")) EXPECT_EQ(multiplier, multipliers("full-dp", "")[0]);
  EXPECT_EQ(multipliers("dpa-ldp", "decay = 1\n"), multipliers("full-dp", ""));
  const auto slower = multipliers("dpa-ldp", "");
  for (size_t i = 1; i < 8; ++i) EXPECT_NEAR(slower[i] / slower[i - 1], std::pow(0.64, 1.0 / 8), 1e-6);
  const auto constant = multipliers("adap-ldp", "");
  for (const double multiplier : constant) EXPECT_EQ(multiplier, constant[0]);
  expect_refused(config("dpa-ldp", "batches = \"poisson\"\n"), "needs batches = \"disjoint\"");
  expect_refused(config("sensitive-dp-style", kPaper), "no paper prints its formula");
}

// As LaDP-FL runs them: budgets that equations 17 to 19 add up over a run, relative to Full DP's.
TEST(SchedulesAsPrinted, BudgetsAddUpToWhatThePaperReports) {
  constexpr int kRounds = 40;
  const auto added_up = [](const std::string& method) {
    privacy::Ledger ledger;
    const Last last = run(small_setup(config(method, kPaper, kRounds)), ledger);
    double sum = 0;
    for (const RoundRecord& round : last.rounds) sum += round.measures.at("sequential_budget");
    return sum;
  };
  const double full = added_up("full-dp");
  EXPECT_NEAR(full, kRounds * 2.0 / 3, 1e-3 * full) << "batches hold a third of the records";
  EXPECT_NEAR(added_up("adap-ldp") / full, 1.0, 1e-9) << "static noise on Full DP's path";
  EXPECT_NEAR(added_up("time-varying-dp") / full, 1.573, 0.01);
  EXPECT_NEAR(added_up("dpa-ldp") / full, 1.2604, 0.01);
}

// A loud layer hides no quiet one.
TEST(LadpFlAsPrinted, AnUploadCostsWhatItsQuietestLayerCosts) {
  const auto first_round = [](const std::string& options) {
    privacy::Ledger ledger;
    return run(small_setup(config("ladp-fl", kPaper + options, 1)), ledger).rounds[0];
  };
  const auto budget = [](const RoundRecord& round) { return round.measures.at("sequential_budget"); };
  const RoundRecord alike = first_round("estimate = false\n");
  EXPECT_NEAR(budget(first_round("kl_least = 0.9\n")) / budget(alike), 0.9, 1e-9)
      << "both at the floor: noise by 1/0.9";
  // Weights are looked at after training: up to the norm at which some layers are bare.
  RoundRecord some = alike;
  double least = norms_of_layers(small_setup(config("ladp-fl"))).between;
  for (; some.noise_norm > 0.99 * alike.noise_norm; least *= 1.05) {
    some = first_round(fmt::format("estimate = false\nleast_norm = {}\n", least));
  }
  EXPECT_GT(some.noise_norm, 0) << "not all of them";
  EXPECT_TRUE(std::isinf(budget(some)));
}

TEST(OldNames, StandForTheMethodsThatTheyWere) {
  const auto spec = config::parse_run_spec(config("dpa-ldp-style", "growth = 1\n"), "a.toml", {});
  EXPECT_EQ(spec.method, "dpa-ldp");
  EXPECT_EQ(spec.hash(), config::parse_run_spec(config("dpa-ldp", "growth = 1\n"), "a.toml", {}).hash());
  expect_refused(config("dpa-style", ""), "dpa-ldp");
}

// The formula divides by an estimate of next to nothing: what is reported of its noise is a least value.
TEST(LadpFlAsPrinted, SaysHowManyLayersTheFloorDecided) {
  privacy::Ledger ledger, other;
  const Last floored = run(small_setup(config("ladp-fl", kPaper + "kl_least = 0.9\n", 1)), ledger);
  EXPECT_EQ(floored.rounds[0].measures.at("layers_at_kl_least"), 2.0);
  const Last free = run(small_setup(config("ladp-fl", kPaper + "kl_least = 1e-12\n", 1)), other);
  EXPECT_EQ(free.rounds[0].measures.at("layers_at_kl_least"), 0.0);
}

// Page: 40 participations of 20 steps, all layers noised, P = B, η = 0.1, E = 2, G_c = 20, 500 records in batches
// of 50.
struct Really {
  double claimed, at_002, at_1e5;
};

class AsPrinted : public ::testing::TestWithParam<Really> {};

TEST_P(AsPrinted, TheMostCharitableReadingProvesFarMoreThanItClaims) {
  const auto [epsilon, at_002, at_1e5] = GetParam();
  const auto setup = changed(small_setup(config("ladp-fl", kPaper + "estimate = false\n")), [](config::RunSpec& spec) {
    spec.federation.lr = 0.1;
    spec.federation.local_epochs = 2;
    spec.federation.batch = 50;
    spec.privacy->delta = 0.02;
  });
  for (const auto& [delta, really] : std::map<double, double>{{0.02, at_002}, {1e-5, at_1e5}}) {
    const privacy::Channel release =
        setup.method().plan(setup.public_context(), {.records = 500, .participations = 40, .epsilon = epsilon}).front();
    EXPECT_NEAR(release.terms().noise_scale, methods::ladp_constant(epsilon, 0.02) * 8 / epsilon * 1.0,
                0.02 * release.terms().noise_scale);
    EXPECT_NEAR(release.terms().sensitivity, 80, 0.2) << "2ηG_c for each of 20 steps; the paper has 8";
    privacy::Tally tally;
    tally.add(release.terms(), 40);
    EXPECT_EQ(tally.claimed(delta), epsilon);
    EXPECT_NEAR(tally.proven(delta) / really, 1.0, 0.02);
  }
}

INSTANTIATE_TEST_SUITE_P(Page, AsPrinted, ::testing::Values(Really{0.2, 56, 76}, Really{0.5, 258, 304}));

TEST(LadpFlAsPrinted, NothingIsProvenAndTheLedgerSaysWhy) {
  for (const auto& [options, why] : std::map<std::string, std::string>{
           {"least_norm = 1.0\n", "layers of small weights are sent without noise, and"},
           {"least_norm = 1.0\nestimate = false\n", "layers of small weights are sent without noise"},
           {"least_norm = 0\n", "how much noise a layer gets is computed from private weights"}}) {
    const auto setup = small_setup(config("ladp-fl", kPaper + options, 2));
    privacy::Ledger ledger;
    run(setup, ledger);
    EXPECT_EQ(guarantee(ledger, 0).proven, std::numeric_limits<double>::infinity()) << options;
    EXPECT_EQ(guarantee(ledger, 0).claimed, 2.0) << options;
    EXPECT_THAT(ledger.events().front().why_unproven, HasSubstr(why));
  }
}

TEST(LadpFlAsPrinted, LayersBelowTheThresholdGoOutAsTheyAre) {
  const auto upload_of = [](double least_norm, uint64_t noise_seed) {
    auto setup = small_setup(config("ladp-fl", kPaper + fmt::format("least_norm = {}\n", least_norm), 1));
    privacy::Ledger ledger;
    const auto client = setup.method().make_client(setup.client_context());
    const methods::Broadcast broadcast = setup.method().make_server(setup.public_context())->open();
    privacy::PrivateState state;
    const data::Shard shard = setup.partition().shard(0);
    const methods::StepContext context{
        .seed = 1, .release = {.ledger = ledger, .round = 1, .seed = noise_seed}, .own = setup.facts_of(0)};
    const auto result = client->step(broadcast, shard, state, context);
    return clone(result.upload->values());
  };
  const auto changed = [&](double least_norm) {
    const NamedTensors one = upload_of(least_norm, 1), two = upload_of(least_norm, 2);
    int count = 0;
    for (const auto& [name, value] : one) count += value.equal(find_tensor(two, name)) ? 0 : 1;
    return count;
  };
  EXPECT_EQ(changed(0), 4) << "every tensor has noise";
  EXPECT_EQ(changed(1e6), 0) << "none has: other noise, the same upload";
}

TEST(LadpFlAsPrinted, NoiseIsTheFormulas) {
  for (const char* options : {"", "estimate = false\n", "least_norm = 1\n"}) {
    const auto setup = small_setup(config("ladp-fl", kPaper + options, 1));
    privacy::Ledger ledger;
    const Last last = run(setup, ledger);
    // Without noise the same clients would have sent these updates.
    const auto bare = small_setup(config("ladp-fl", kPaper + "least_norm = 1e9\n", 1));
    privacy::Ledger unused;
    const Last clean = run(bare, unused);
    double total = 0, expected = 0;
    for (size_t i = 0; i < last.uploads.size(); ++i) {
      double square = 0;
      for (const auto& [name, value] : last.uploads[i]) {
        if (name != "records") square += (value - find_tensor(clean.uploads[i], name)).square().sum().item<double>();
      }
      total += std::sqrt(square);
    }
    for (const auto& event : ledger.events()) {
      const json parameters = json::parse(event.parameters);
      double square = 0;
      for (const json& group : parameters["groups"]) {
        square += group["coordinates"].get<double>() * std::pow(group["stddev"].get<double>(), 2);
      }
      expected += std::sqrt(square);
    }
    EXPECT_NEAR(last.rounds[0].noise_norm / expected, 1, 1e-9) << options;
    EXPECT_NEAR(total / expected, 1, 0.25) << options << ": four uploads of 83 weights, noise of few layers";
  }
}

TEST(LadpFlAsPrinted, ReportedNoiseHasTheReportedNormAndItsRealPrice) {
  const auto setup = small_setup(config("ladp-fl", kPaper + "reported_norm = 3.5\n", 2));
  privacy::Ledger ledger;
  const Last last = run(setup, ledger);
  EXPECT_NEAR(last.rounds[0].noise_norm, kClients * 3.5, 1e-3);
  // 60 records: 3 steps of at most 0.2·20 each; Δ = 2·12.
  const double stddev = 3.5 / std::sqrt(83.0);
  const double mu = std::sqrt(2.0) * 24 / stddev;
  // Of noise that is so small for its bound, what rounding adds is no longer covered: nothing is proven.
  EXPECT_GT(privacy::gaussian_epsilon(mu, std::log(kDelta)), 1000);
  EXPECT_TRUE(std::isinf(guarantee(ledger, 0).proven));
  EXPECT_EQ(guarantee(ledger, 0).claimed, 2);
}

TEST(LadpFlAsPrinted, BatchGradientsAreClippedAndUpdatesBounded) {
  auto setup = small_setup(config("full-dp", kPaper + "batch_clip = 0.01\nreported_norm = 1e-9\n", 1));
  privacy::Ledger ledger;
  const auto start = setup.method().make_server(setup.public_context())->open();
  const Last last = run(setup, ledger);
  for (const NamedTensors& upload : last.uploads) {
    double square = 0;
    for (const auto& [name, value] : upload) {
      if (name != "records") square += value.square().sum().item<double>();
    }
    EXPECT_LE(std::sqrt(square), 3 * 0.2 * 0.01 * (1 + 1e-4));
    EXPECT_GT(std::sqrt(square), 2 * 0.2 * 0.01) << "the clip is felt";
  }
}

// One record of one client is there or not; can the server tell from the upload?
audit::Outcome audited(const std::string& options) {
  const auto setup = std::make_shared<const Setup>(
      changed(small_setup(config("ladp-fl", options, 1)), [](config::RunSpec& spec) { spec.model.hidden = {200}; }));
  return audit::audit(audit::release_case(setup, {}), {.trials = 600, .threads = 2});
}

TEST(LadpFlAudit, AnUnnoisedLayerGivesARecordAway) {
  const audit::Outcome outcome = audited(kPaper + "least_norm = 1e6\n");
  EXPECT_EQ(outcome.verdict(), audit::Verdict::kRefuted) << outcome.epsilon();
  EXPECT_EQ(outcome.finding.statistic, "equality");
  EXPECT_EQ(outcome.audited.proven, std::numeric_limits<double>::infinity());
}

TEST(LadpFlAudit, TheScaleOfTheNoiseGivesARecordAway) {
  const audit::Outcome outcome = audited(kPaper + "kl_least = 1e-8\n");
  EXPECT_EQ(outcome.verdict(), audit::Verdict::kRefuted) << outcome.epsilon();
  EXPECT_THAT(outcome.finding.statistic, ::testing::AnyOf("likelihood", "equality"));
}

TEST(LadpFlAudit, TheSoundVariantKeepsItsPromise) {
  const audit::Outcome outcome = audited("");
  EXPECT_EQ(outcome.verdict(), audit::Verdict::kConsistent) << outcome.epsilon();
  EXPECT_LE(outcome.audited.proven, 2.0);
}

}  // namespace
}  // namespace sotto::federation
