#include "config/load.h"

#include "base/error.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sotto::config {
namespace {

using ::testing::HasSubstr;

RunSpec parse(const std::string& text, const std::vector<std::string>& overrides = {}) {
  return parse_run_spec(text, "run.toml", overrides);
}

std::string error_of(const std::string& text, const std::vector<std::string>& overrides = {}) {
  try {
    parse(text, overrides);
  } catch (const UserError& error) {
    return error.what();
  }
  return "no error";
}

TEST(LoadRunSpec, EmptyFileGivesDefaults) {
  const RunSpec spec = parse("");
  EXPECT_EQ(spec.data.name, "fashion-mnist");
  EXPECT_EQ(spec.method, "fedavg");
  EXPECT_EQ(spec.variant, methods::Variant::kSound);
  EXPECT_FALSE(spec.privacy.has_value());
}

TEST(LoadRunSpec, ReadsEverySection) {
  const RunSpec spec = parse(R"(
seed = 7
rounds = 3
[data]
clients = 4
partition = "dirichlet"
alpha = 0.1
[model]
name = "mlp"
hidden = [32, 16]
[federation]
cohort = 2
lr = 1
[method]
name = "fedprox"
mu = 0.5
[privacy]
epsilon = 1
delta = 1e-5
adjacency = "replace"
)");
  EXPECT_EQ(spec.seed, 7U);
  EXPECT_EQ(spec.data.alpha, 0.1);
  EXPECT_EQ(spec.model.hidden, (std::vector<int64_t>{32, 16}));
  EXPECT_EQ(spec.federation.lr, 1.0);
  EXPECT_EQ(spec.method_options, R"({"mu":0.5})");
  EXPECT_EQ(spec.privacy->adjacency, privacy::Adjacency::kReplace);
}

TEST(LoadRunSpec, UnknownKeyNamesTheNearestAndItsLine) {
  const std::string error = error_of("rounds = 2\n[data]\nclinets = 4\n");
  EXPECT_THAT(error, HasSubstr("run.toml:3"));
  EXPECT_THAT(error, HasSubstr("data.clinets"));
  EXPECT_THAT(error, HasSubstr("did you mean 'clients'?"));
}

TEST(LoadRunSpec, UnknownSectionAndMethodAreErrors) {
  EXPECT_THAT(error_of("[daat]\nname = \"x\"\n"), HasSubstr("did you mean 'data'?"));
  EXPECT_THAT(error_of("[method]\nname = \"fedavgg\"\n"), HasSubstr("did you mean 'fedavg'?"));
}

TEST(LoadRunSpec, OptionOfAnotherMethodIsAnError) {
  EXPECT_THAT(error_of("[method]\nname = \"fedavg\"\nmu = 1.0\n"), HasSubstr("method.mu is not a known key"));
}

TEST(LoadRunSpec, KeysThatTheModelOrPartitionDoesNotHaveAreErrors) {
  EXPECT_THAT(error_of("[model]\nname = \"cnn\"\npatch = 8\n"), HasSubstr("model.patch does nothing with model 'cnn'"));
  EXPECT_THAT(error_of("[model]\nname = \"cnn\"\nhidden = [8]\n"), HasSubstr("model.hidden"));
  EXPECT_THAT(error_of("[model]\nname = \"mlp\"\nnorm = \"batch\"\n"), HasSubstr("model.norm"));
  EXPECT_THAT(error_of("[data]\nalpha = 0.1\n"), HasSubstr("data.alpha does nothing with partition 'iid'"));
  EXPECT_THAT(error_of("[data]\npartition = \"dirichlet\"\nrecords_per_client = 5\n"),
              HasSubstr("data.records_per_client"));
  parse("[model]\nname = \"vit-tiny\"\npatch = 8\nadapter = 4\n");
  parse("[data]\npartition = \"distribution-1\"\nclasses_per_client = 3\nprivate_label = 1\n");
  parse("[data]\nalpha = 0.5\n");  // what is the default anyway harms nobody
}

// A key each that another setting turns off, and that setting.
struct Idle {
  const char* method;
  const char* key;
  const char* needs;
};

TEST(LoadRunSpec, KeysThatDoNothingAreErrors) {
  const std::vector<Idle> all = {{"fedavg", "federation.momentum=0.9", "federation.optimizer=sgd"},
                                 {"fedavg", "federation.sampling=poisson", "federation.cohort=2"},
                                 {"fedavg", "model.freeze_backbone=true", "model.name=cnn"},
                                 {"ldp-fedavg", "method.quantile=0.3", "method.clipping=adaptive"},
                                 {"ldp-fedavg", "method.quantile_lr=0.3", "method.clipping=adaptive"},
                                 {"dp-fedavg", "method.quantile_noise=0.3", "method.clipping=adaptive"},
                                 {"ladp-fl", "method.kl_least=0.1", "method.estimate=true"},
                                 {"ladp-fl", "method.kl_bound=0.9", "method.estimate=true"},
                                 {"ladp-fl", "method.kl_exponent=0.5", "method.estimate=true"},
                                 {"fedproto", "method.gamma=0.1", "method.dcr=true"},
                                 {"fedproto", "method.beta=0.1", "method.dcr=true"},
                                 {"fedproto", "method.tau=1", "method.dcr=true"},
                                 {"fedproto", "method.distill=1", "method.dcr=true"},
                                 {"fedproto", "method.distill_by_tau=true", "method.dcr=true"},
                                 {"fedproto", "method.selection=free", "method.mechanism=vpp"},
                                 {"fedproto", "method.weighting=best", "method.mechanism=vpp"},
                                 {"fedproto", "method.rho=0.3", "method.mechanism=vpp"},
                                 {"fedproto", "method.split=0.3", "method.mechanism=vpp"},
                                 {"fedproto", "method.high=0.3", "method.mechanism=vpp"},
                                 {"fedproto", "method.zeta=0.3", "method.mechanism=vpp"},
                                 {"fedproto", "method.centre_share=0.3", "method.centre=true"},
                                 {"fedproto", "method.encoder_share=0.3", "method.encoder=dp-sgd"},
                                 {"fedproto", "method.encoder_clip=2", "method.encoder=dp-sgd"},
                                 {"fedproto", "method.public_data=mnist", "method.encoder=public"},
                                 {"fedproto", "method.public_epochs=3", "method.encoder=public"},
                                 {"fedproto", "method.anchors=3", "method.name=fedplvm"},
                                 {"fedproto", "method.cluster_rate=0.3", "method.name=fedplvm"}};
  for (const Idle& idle : all) {
    const std::string text = std::string("[data]\nclients = 3\n[model]\nname = \"logistic\"\n[federation]\n") +
                             "optimizer = \"adam\"\n[method]\nname = \"" + idle.method + "\"\n";
    const std::string key = std::string(idle.key).substr(0, std::string(idle.key).find('='));
    EXPECT_THAT(error_of(text, {idle.key}), HasSubstr(key + " does nothing with")) << idle.key;
    EXPECT_EQ(error_of(text, {idle.key, idle.needs}), "no error") << idle.key;
  }
  EXPECT_THAT(error_of("[data]\nclients = 3\n[federation]\neval_clients = 4\n"), HasSubstr("more than the 3 clients"));
}

TEST(LoadRunSpec, AVariantThatTheMethodDoesNotHaveIsAnError) {
  EXPECT_THAT(error_of("[method]\nname = \"fedavg\"\nvariant = \"paper\"\n"), HasSubstr("no paper variant"));
  parse("[method]\nname = \"nbafl\"\nvariant = \"paper\"\n");
}

TEST(LoadRunSpec, AMethodMaySayWhatStaysPersonalUnlessTheModelDoes) {
  EXPECT_TRUE(parse("[method]\nname = \"ldp-fedavg\"\n").model.personal.empty());
  const RunSpec heads = parse("[method]\nname = \"fedper\"\n");
  EXPECT_EQ(heads.model.personal, std::vector<std::string>{"head."});
  EXPECT_EQ(parse(heads.to_toml()).hash(), heads.hash());
  const RunSpec other = parse("[method]\nname = \"fedper\"\n[model]\npersonal = [\"hidden.\"]\n");
  EXPECT_EQ(other.model.personal, std::vector<std::string>{"hidden."});
}

TEST(LoadRunSpec, LowRankPathsNameTheirLayers) {
  const RunSpec spec = parse("[model]\nname = \"mlp\"\nlora = { rank = 4, targets = [\"fc1\", \"fc2\"] }\n");
  EXPECT_EQ(spec.model.lora.rank, 4);
  EXPECT_EQ(spec.model.lora.targets, (std::vector<std::string>{"fc1", "fc2"}));
  EXPECT_EQ(parse(spec.to_toml()).model, spec.model);
  EXPECT_EQ(parse(spec.to_toml()).hash(), spec.hash());
  EXPECT_NE(parse(spec.to_toml(), {"model.lora.rank=2"}).hash(), spec.hash());
  EXPECT_EQ(parse("[model]\nlora = { rank = 0 }\n").hash(), parse("").hash());
}

TEST(LoadRunSpec, FeaturesAreLaidOnAxesOfSomethingNamed) {
  const RunSpec spec = parse("[data]\nfeatures = \"hog\"\nproject_on = \"mnist\"\nproject = 32\n");
  EXPECT_EQ(spec.data.project_on, "mnist");
  EXPECT_EQ(parse(spec.to_toml()).hash(), spec.hash());
  EXPECT_NE(parse(spec.to_toml(), {"data.project=16"}).hash(), spec.hash());
  EXPECT_THAT(error_of("[data]\nfeatures = \"hog\"\nproject = 32\n"), HasSubstr("needs data.project_on"));
  EXPECT_THAT(error_of("[data]\nproject_on = \"mnist\"\n"), HasSubstr("set data.features too"));
}

TEST(LoadRunSpec, OptionsAreKeptTyped) {
  const RunSpec spec = parse("[method]\nname = \"fedprox\"\nmu = 0.5\n");
  EXPECT_TRUE(spec.options.has_value());
  const RunSpec other = with_method(spec, "fedprox", methods::Variant::kSound, {{"mu", 0.25}});
  EXPECT_EQ(other.method_options, R"({"mu":0.25})");
  EXPECT_NE(other.hash(), spec.hash());
  EXPECT_THROW(with_method(spec, "fedavg", methods::Variant::kSound, {{"mu", 0.25}}), UserError);
}

struct BadValue {
  const char* text;
  const char* expected;
};

class BadValues : public ::testing::TestWithParam<BadValue> {};

TEST_P(BadValues, GetOneClearLine) {
  const std::string error = error_of(GetParam().text);
  EXPECT_THAT(error, HasSubstr(GetParam().expected));
  EXPECT_EQ(error.find('\n'), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(
    All, BadValues,
    ::testing::Values(
        BadValue{"rounds = 0", "rounds must be in [1, "}, BadValue{"rounds = 1.5", "must be a whole number"},
        BadValue{"rounds = \"two\"", "must be a whole number"}, BadValue{"seed = -1", "seed must be at least 0"},
        BadValue{"[data]\nname = 3", "must be text in quotes"}, BadValue{"[data]\nalpha = 0", "greater than 0"},
        BadValue{"[data]\nalpha = nan", "must be a finite number"},
        BadValue{"[data]\nalpha = inf", "must be a finite number"},
        BadValue{"[data]\ndomains = [1]", "must be a list of texts"}, BadValue{"data = 1", "must be a table"},
        BadValue{"[federation]\nlr = -0.1", "greater than 0"},
        BadValue{"[federation]\noptimizer = \"sdg\"", "did you mean 'sgd'?"},
        BadValue{"[data]\nclients = 3\n[federation]\ncohort = 4", "more than the 3 clients"},
        BadValue{"[model]\nlora = 4", "model.lora must be a table"},
        BadValue{"[model]\nlora = { rank = 4 }", "model.lora.targets is missing"},
        BadValue{"[model.lora]\ntargets = [\"fc1\"]", "model.lora.rank is missing"},
        BadValue{"[model]\nlora = { rank = -1, targets = [\"fc1\"] }", "model.lora.rank must be at least 0"},
        BadValue{"[model]\nlora = { rank = 1, targets = [\"\"] }", "has an empty name"},
        BadValue{"[model]\nlora = { rank = 1, target = [\"fc1\"] }", "did you mean 'targets'?"},
        BadValue{"[record]\nuploads = 1", "must be true or false"}, BadValue{"seed = 2020-01-01", "date or time"},
        BadValue{"rounds = = 2", "not valid TOML"},
        BadValue{"[privacy]\ndelta = 1e-5", "privacy.epsilon has no default"},
        BadValue{"[privacy]\nepsilon = 1.0\ndelta = 1e-5", "privacy.adjacency has no default"},
        BadValue{"[privacy]\nepsilon = 0\ndelta = 1e-5\nadjacency = \"replace\"", "must be in [1e-06, 1000000], not 0"},
        BadValue{"[privacy]\nepsilon = 1\ndelta = 1\nadjacency = \"replace\"", "in (0, 1)"}));

TEST(LoadRunSpec, OverridesWinAndAreChecked) {
  EXPECT_EQ(parse("[federation]\nlr = 0.1", {"federation.lr=0.5"}).federation.lr, 0.5);
  EXPECT_EQ(parse("", {"data.name=mnist"}).data.name, "mnist");
  EXPECT_EQ(parse("", {"model.name=mlp", "model.hidden=[8, 4]"}).model.hidden, (std::vector<int64_t>{8, 4}));
  EXPECT_THAT(error_of("", {"federation.lrr=0.5"}), HasSubstr("did you mean 'lr'?"));
  EXPECT_THAT(error_of("", {"federation.lr"}), HasSubstr("write it as key=value"));
  EXPECT_THAT(error_of("rounds = 2", {"rounds.x=1"}), HasSubstr("not a table"));
}

TEST(RunSpec, TomlRoundTripKeepsTheHash) {
  const RunSpec spec = parse(
      "name = \"a\"\n[method]\nname = \"fedprox\"\nmu = 0.3\n[data]\npartition = \"dirichlet\"\nalpha = 0.123456789\n");
  const RunSpec again = parse(spec.to_toml());
  EXPECT_EQ(spec.hash(), again.hash());
  EXPECT_EQ(spec.to_json(), again.to_json());
}

TEST(RunSpec, HashSeesWhatDeterminesTheResultAndNothingElse) {
  const RunSpec base = parse("");
  EXPECT_EQ(base.hash(), parse("[record]\nuploads = true\ncheckpoint_every = 5\nkeep_states = \"none\"").hash());
  EXPECT_EQ(base.hash(), parse("[federation]\nstate = \"disk\"").hash());
  EXPECT_EQ(base.hash(), parse("[sweep]\nseeds = 3\n[fit]\nrepeats = 2").hash());
  EXPECT_EQ(base.hash(), parse("name = \"other\"").hash());
  EXPECT_NE(base.hash(), parse("seed = 2").hash());
  EXPECT_NE(base.hash(), parse("[method]\nname = \"fedprox\"").hash());
  EXPECT_NE(parse("[method]\nname = \"fedprox\"\nmu = 0.1").hash(),
            parse("[method]\nname = \"fedprox\"\nmu = 0.2").hash());
}

constexpr const char* kTable = R"(
[data]
name = "custom"
path = "p.csv"
[[data.schema.columns]]
name = "age"
kind = "number"
range = [0, 120]
missing = true
fill = 40
[[data.schema.columns]]
name = "outcome"
kind = "label"
values = ["well", "ill"]
)";

constexpr const char* kHospitals = R"(
[data]
clients = 2
[privacy]
epsilon = 4
delta = 1e-5
adjacency = "replace"
[[clients]]
name = "Cleveland"
budget = 0.5
[[clients]]
name = "Zürich"
budget = 8
)";

TEST(LoadRunSpec, ClientsHaveNamesAndBudgets) {
  const RunSpec spec = parse(kHospitals);
  EXPECT_EQ(spec.client_name(0), "Cleveland");
  EXPECT_EQ(spec.client_name(1), "Zürich");
  EXPECT_EQ(spec.privacy->budget_of(1), 8);
  EXPECT_EQ(parse(spec.to_toml()).client_names, spec.client_names) << spec.to_toml();
  EXPECT_EQ(parse(spec.to_toml()).privacy, spec.privacy);
  RunSpec renamed = spec;
  renamed.client_names = {"a", "b"};
  EXPECT_EQ(renamed.hash(), spec.hash()) << "names change no result";
  EXPECT_EQ(parse("").client_name(7), "client 7");
}

TEST(LoadRunSpec, ClientsThatDoNotFitAreRefused) {
  const std::string text = kHospitals;
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string changed = text;
    changed.replace(changed.find(from), from.size(), to);
    return error_of(changed);
  };
  EXPECT_THAT(with("clients = 2", "clients = 3"), HasSubstr("clients are 2, and data.clients says 3"));
  EXPECT_THAT(with("Cleveland", "Zürich"), HasSubstr("another client's name already"));
  EXPECT_THAT(with("name = \"Cleveland\"", ""), HasSubstr("every client needs one"));
  EXPECT_THAT(with("budget = 0.5", ""), HasSubstr("1 budgets for 2 clients"));
  EXPECT_THAT(with("budget = 0.5", "budget = 0"), HasSubstr("budget must be in [1e-06"));
  EXPECT_THAT(with("budget = 0.5", "buget = 0.5"), HasSubstr("did you mean 'budget'?"));
  EXPECT_THAT(error_of(text, {"privacy.budgets=[1, 2]"}), HasSubstr("give them once"));
  EXPECT_THAT(error_of("[data]\nclients = 1\n[[clients]]\nname = \"a\"\nbudget = 1\n"),
              HasSubstr("there is no [privacy]"));
}

TEST(LoadRunSpec, TextThatIsNotUtf8IsRefused) {
  EXPECT_THAT(error_of("", {"data.path=caf\xe9"}), HasSubstr("--set data.path: this is not UTF-8 text"));
}

TEST(LoadRunSpec, RefusesNumbersBeyondReason) {
  EXPECT_THAT(error_of("[federation]\nlr = 1e300\n"), HasSubstr("run.toml:2: federation.lr must be at most 3.4e+38"));
  EXPECT_EQ(error_of("[federation]\nlr = 1e37\n"), "no error");
  const std::string terms = "[privacy]\ndelta = 1e-5\nadjacency = \"replace\"\n";
  for (const char* epsilon : {"1e-300", "1e7"}) {
    EXPECT_THAT(error_of(terms + "epsilon = " + epsilon), HasSubstr("run.toml:4: privacy.epsilon must be in [1e-06"));
    EXPECT_THAT(error_of(terms + "epsilon = 1\nbudgets = [1, " + epsilon + "]"), HasSubstr("privacy.budgets must be"));
  }
}

TEST(LoadRunSpec, RefusesTablesWithinTablesWithoutEnd) {
  std::string header = "a";
  for (int i = 0; i < 50'000; ++i) header += ".a";
  EXPECT_THAT(error_of("\n[" + header + "]\n"), HasSubstr("run.toml:2: a key has more than 64 parts"));
  EXPECT_THAT(error_of(header + " = 1\n"), HasSubstr("more than 64 parts"));
  EXPECT_THAT(error_of("", {header + "=1"}), HasSubstr("--set:1: a key has more than 64 parts"));
  std::string budgets = "budgets = [0.5";
  for (int i = 0; i < 100; ++i) budgets += ", 0.5";
  EXPECT_EQ(error_of("[privacy]\nepsilon = 1\ndelta = 1e-5\nadjacency = \"replace\"\n" + budgets + "]\n"), "no error");
}

TEST(LoadRunSpec, ASchemaIsPartOfTheSettings) {
  const RunSpec spec = parse(kTable);
  ASSERT_TRUE(spec.data.schema.declared.has_value());
  EXPECT_EQ(spec.data.schema.declared->columns.size(), 2U);
  EXPECT_EQ(spec.data.schema.declared->columns[0].high, 120);
  EXPECT_EQ(parse(spec.to_toml()).data, spec.data) << spec.to_toml();
  EXPECT_EQ(parse(spec.to_toml()).hash(), spec.hash());
  RunSpec wider = spec;
  wider.data.schema.declared->columns[0].high = 121;
  EXPECT_NE(wider.hash(), spec.hash());
}

TEST(LoadRunSpec, ASchemaMayBeAFileOrInferred) {
  EXPECT_TRUE(parse("[data]\nschema = \"inferred\"\n").data.schema.inferred);
  EXPECT_EQ(parse("[data]\nschema = \"\"\n").data.schema, data::SchemaChoice());
  const RunSpec inferred = parse("[data]\nschema = \"inferred\"\n");
  EXPECT_EQ(parse(inferred.to_toml()).data, inferred.data);
  EXPECT_NE(inferred.hash(), parse("").hash());
  EXPECT_THAT(error_of("[data]\nschema = \"nowhere.toml\"\n"), HasSubstr("run.toml:2: data.schema names nowhere.toml"));
  EXPECT_THAT(error_of("[data]\nschema = 3\n"), HasSubstr("run.toml:2: data.schema must be"));
  EXPECT_THAT(error_of(kTable, {"data.schema.columns=[]"}), HasSubstr("exactly one column must be the label"));
  EXPECT_THAT(error_of("[data.schema]\ncolums = []\n"), HasSubstr("did you mean 'columns'?"));
}

}  // namespace
}  // namespace sotto::config
