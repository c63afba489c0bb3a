// Prototype frameworks as they run: what they release, what it costs, and what one record can do.
#include "methods/prototypes/prototype_release.h"
#include "privacy/calibration.h"
#include "small_run.h"

#include <nlohmann/json.hpp>

#include <cmath>

namespace sotto::federation {
namespace {

const std::vector<std::string> kFrameworks = {"fedproto", "fedpcl", "fpl", "fedplvm", "fedtgp", "mpft"};

struct Settings {
  std::string framework = "fedproto";
  std::string method = {};  // further lines of [method]
  std::string adjacency = "replace";
  int rounds = 3;
  std::string data = "clients = 4\n";
  double epsilon = 2;
};

std::string toml(const Settings& settings) {
  return fmt::format(
      "rounds = {}\n[data]\n{}\n[federation]\nbatch = 16\noptimizer = \"adamw\"\nlr = 0.01\n[privacy]\nepsilon = "
      "{}\ndelta = 1e-4\nadjacency = \"{}\"\nunproven = [\"prototypes\", \"dimensions\"]\n"
      "[record]\nuploads = true\n[method]\nname = \"{}\"\nwidth = 4\nhead = [8]\n{}\n",
      settings.rounds, settings.data, settings.epsilon, settings.adjacency, settings.framework, settings.method);
}

privacy::Guarantee spent(const privacy::Ledger& ledger, const Setup& setup, int64_t client = 0) {
  return ledger.tallies("server").at(client).guarantee(setup.spec().privacy->delta);
}

TEST(PrototypeMethods, EverySoundReleaseKeepsItsBudget) {
  const std::vector<std::string> plugins = {
      "",
      "release = \"once\"",
      "mechanism = \"vpp\"",
      "mechanism = \"vpp\"\nselection = \"once\"",
      "mechanism = \"vpp\"\nselection_noise = \"laplace\"",
      "mechanism = \"vpp\"\nselection = \"free\"\nweighting = \"best\"",
      "mechanism = \"vpp\"\nselection = \"random\"\nweighting = \"even\"\ndcr = true\nshrink = true",
      "encoder = \"dp-sgd\"",
      "encoder = \"dp-sgd\"\nrelease = \"once\"\nmechanism = \"vpp\"",
      "release = \"once\"\ncentre = true\nnormalise = true\nprior = true"};
  std::vector<Settings> all;
  for (const auto& framework : kFrameworks) all.push_back({.framework = framework, .method = plugins.back()});
  for (const char* framework : {"fedproto", "fedplvm"}) {
    for (const char* adjacency : {"replace", "zero-out", "replace-same-label"}) {
      for (const std::string& plugin : plugins) {
        all.push_back({.framework = framework, .method = plugin, .adjacency = adjacency});
      }
    }
  }
  for (Settings& settings : all) {
    settings.rounds = 2;
    const auto setup = small_setup(toml(settings));
    privacy::Ledger ledger;
    EXPECT_EQ(run(setup, ledger).rounds.size(), 2U);
    for (int64_t client = 0; client < 4; ++client) {
      const auto cost = spent(ledger, setup, client);
      EXPECT_LE(cost.proven, 2.0) << toml(settings);
      EXPECT_GT(cost.proven, 1.5) << toml(settings);
    }
  }
}

TEST(PrototypeMethods, AClientAloneCentresByItsOwnMeanAndSendsNothing) {
  const auto setup = small_setup(toml({.method = "mechanism = \"local\"\nown_centre = true"}));
  privacy::Ledger ledger;
  EXPECT_TRUE(run(setup, ledger).uploads.empty());
  EXPECT_TRUE(ledger.events().empty());
  const auto client = setup.method().make_client(setup.client_context());
  const methods::Broadcast broadcast = setup.method().make_server(setup.public_context())->open();
  const data::Shard shard = setup.partition().shard(1);
  privacy::PrivateState state;
  client->select(broadcast, state);
  const at::Tensor mean = client->features(setup.dataset().train.x.index_select(0, shard.train)).mean(0).clone();
  client->step(broadcast, shard, state,
               {.seed = setup.spec().seed, .release = {.ledger = ledger, .round = 1, .client = 1}});
  EXPECT_TRUE(at::allclose(find_tensor(state.values(), "state.centre"), mean, 1e-4, 1e-5));
  const at::Tensor x = setup.dataset().test.x;
  client->select(broadcast, state);
  const at::Tensor centred = client->predict(x).clone();
  NamedTensors without = clone(state.values());
  std::erase_if(without, [](const NamedTensor& tensor) { return tensor.name == "state.centre"; });
  client->select(broadcast, privacy::PrivateState(without));
  EXPECT_FALSE(at::allclose(client->predict(x), centred)) << "the head has learnt around it";
}

TEST(PrototypeMethods, SoundSelectionsPickByGumbelNoiseWithLessOfIt) {
  const auto noise = [](const std::string& method) {
    const auto setup = small_setup(toml({.method = method}));
    privacy::Ledger ledger;
    run(setup, ledger);
    for (const auto& event : ledger.events()) {
      if (event.what == "dimensions") return std::pair(event.mechanism, event.noise_scale);
    }
    return std::pair(std::string(), 0.0);
  };
  const auto gumbel = noise("mechanism = \"vpp\"");
  const auto laplace = noise("mechanism = \"vpp\"\nselection_noise = \"laplace\"");
  EXPECT_EQ(gumbel.first, privacy::kGumbelTopKMechanism);
  EXPECT_EQ(laplace.first, privacy::kTopKMechanism);
  EXPECT_GT(gumbel.second, 0.0);
  EXPECT_LT(gumbel.second, 0.7 * laplace.second);
  EXPECT_EQ(noise("variant = \"paper\"\nmechanism = \"vpp\"").first, privacy::kTopKMechanism);
  EXPECT_THROW(noise("variant = \"paper\"\nmechanism = \"vpp\"\nselection_noise = \"gumbel\""), UserError);
}

TEST(PrototypeMethods, TheOracleIsSaidNotToBePrivate) {
  const auto setup = small_setup(toml({.method = "mechanism = \"vpp\"\nselection = \"oracle\""}));
  privacy::Ledger ledger;
  const Last last = run(setup, ledger);
  EXPECT_TRUE(last.rounds.back().abstained.empty()) << "what is outside any budget does not end it";
  const auto cost = spent(ledger, setup);
  EXPECT_TRUE(std::isinf(cost.proven));
  ASSERT_FALSE(cost.why_unproven.empty());
  EXPECT_THAT(cost.why_unproven.front(), ::testing::HasSubstr("oracle"));
}

TEST(PrototypeMethods, ANoisyEncoderIsTrainedAndPaidFor) {
  const auto setup = small_setup(toml({.method = "encoder = \"dp-sgd\"\nencoder_share = 0.75", .rounds = 2}));
  privacy::Ledger ledger;
  run(setup, ledger);
  double encoder = 0, prototypes = 0;
  for (const auto& event : ledger.events()) {
    if (event.client != 0) continue;
    const double cost = std::pow(event.sensitivity / event.noise_scale, 2) * static_cast<double>(event.steps);
    (event.what == "encoder" ? encoder : prototypes) += cost;
  }
  EXPECT_NEAR(encoder / (encoder + prototypes), 0.75, 1e-6);
}

TEST(PrototypeMethods, TrafficIsSumsAndCountsOfAllClassesOrMeans) {
  constexpr int64_t kClasses = 3, kWidth = 4, kClients = 4;
  const auto bytes = [](const Settings& settings) {
    const auto setup = small_setup(toml(settings));
    privacy::Ledger ledger;
    return run(setup, ledger).rounds.back().upload_bytes;
  };
  for (const char* mechanism : {"mechanism = \"igpp\"", "mechanism = \"vpp\""}) {
    EXPECT_EQ(bytes({.method = mechanism}), kClients * kClasses * (kWidth + 1) * 4) << mechanism;
    const std::string paper = fmt::format("variant = \"paper\"\n{}", mechanism);
    EXPECT_EQ(bytes({.method = paper}), kClients * (kClasses * kWidth * 4 + 8)) << "and one number: how many records";
  }
  EXPECT_EQ(bytes({.method = "release = \"once\""}), 0) << "after the first round nothing is sent";
}

TEST(PrototypeMethods, OnceReleasesOnceWithTheWholeBudget) {
  const auto every = small_setup(toml({.rounds = 5}));
  const auto once = small_setup(toml({.method = "release = \"once\"", .rounds = 5}));
  privacy::Ledger of_every, of_once;
  run(every, of_every);
  const Last last = run(once, of_once);
  EXPECT_EQ(of_every.rows(), 20);
  EXPECT_EQ(of_once.rows(), 4);
  EXPECT_NEAR(of_every.events().front().noise_scale / of_once.events().front().noise_scale, std::sqrt(5.0), 0.01);
  EXPECT_TRUE(find_tensor(last.broadcast, "prototypes.values").defined());
}

// The noise is replayed, so the difference of two worlds' uploads is the difference of what was bounded.
double moved(const Settings& settings, const std::function<void(data::Records&)>& change,
             const std::vector<privacy::Group>& groups) {
  std::vector<NamedTensors> uploads[2];
  for (const int world : {0, 1}) {
    auto setup = small_setup(toml(settings));
    data::Records records = setup.dataset().train;
    if (world == 1) change(records);
    setup = setup.with_records(std::move(records));
    privacy::Ledger ledger;
    uploads[world] = run(setup, ledger).uploads;
  }
  double square = 0;
  const size_t last = uploads[0].size() - 4;  // client 0 in the last round
  for (size_t i = 0; i < uploads[0][last].size(); ++i) {
    const at::Tensor difference = uploads[1][last][i].value - uploads[0][last][i].value;
    if (groups[i].sensitivity > 0) square += std::pow(difference.norm().item<double>() / groups[i].sensitivity, 2);
    if (groups[i].sensitivity == 0) {
      EXPECT_EQ(difference.abs().sum().item<double>(), 0);
    }
  }
  return std::sqrt(square);
}

int64_t first_record_of_client_0(const Settings& settings) {
  return small_setup(toml(settings)).partition().shard(0).train[0].item<int64_t>();
}

TEST(PrototypeMethods, OneRecordMovesASoundUploadByItsSensitivityAtMost) {
  for (const char* framework : {"fedproto", "fedplvm"}) {
    for (const char* adjacency : {"replace", "replace-same-label"}) {
      const Settings settings{.framework = framework, .adjacency = adjacency, .rounds = 4};
      const int64_t row = first_record_of_client_0(settings);
      privacy::CellRule rule;
      rule.cells = 3 * (std::string(framework) == "fedplvm" ? 2 : 1);
      rule.by_label = rule.cells == 3;
      rule.adjacency =
          std::string(adjacency) == "replace" ? privacy::Adjacency::kReplace : privacy::Adjacency::kReplaceSameLabel;
      rule.parts = {{"sums", 4, 10.0, 1.0}};
      const double by_record = moved(
          settings, [&](data::Records& records) { records.x[row] = records.x[row] * -1000; }, rule.groups());
      EXPECT_LE(by_record, 1.001) << framework << ", " << adjacency;
      EXPECT_GT(by_record, 0.01) << "the change was seen, though the training it spoilt was not";
      if (rule.adjacency == privacy::Adjacency::kReplace) {
        const double by_label = moved(
            settings,
            [&](data::Records& records) {
              records.x[row] = records.x[row] * -1000;
              records.y[row] = (records.y[row] + 1) % 3;
            },
            rule.groups());
        EXPECT_LE(by_label, 1.001) << framework;
        EXPECT_GT(by_label, 0.5) << "two counts move";
      }
    }
  }
}

// As printed, prototypes come from an encoder that was trained on the record: it moves more than the noise was made
// for.
TEST(PrototypeMethods, OneRecordMovesAPrintedUploadByMoreThanWasClaimed) {
  const Settings settings{.method = "variant = \"paper\"\nradius = 2", .adjacency = "replace-same-label", .rounds = 20};
  const int64_t row = first_record_of_client_0(settings);
  std::vector<privacy::Group> one = {{"prototypes", 1, 12, 1.0}, {"records", 1, 1, 1.0}};
  const double change = moved(
      settings, [&](data::Records& records) { records.x[row] = records.x[row] * -5; }, one);
  const double claimed = 2 * 2.0 / 20;  // 2R/n_c, twenty records of a class
  EXPECT_GT(change, 2 * claimed);
}

// Algorithm 1: release, aggregate, fine-tune. What the first round releases no training has touched.
TEST(PrototypeMethods, AsPrintedAClientReleasesBeforeItTrains) {
  const auto uploads = [](const std::string& learning_rate) {
    auto setup = changed(small_setup(toml({.method = "variant = \"paper\"", .rounds = 2})),
                         [&](config::RunSpec& spec) { spec.federation.lr = std::stod(learning_rate); });
    privacy::Ledger ledger;
    return run(setup, ledger);
  };
  const Last slow = uploads("0.001"), fast = uploads("0.1");
  EXPECT_EQ(slow.rounds[0].samples, 0) << "nothing was trained yet";
  EXPECT_GT(slow.rounds[1].samples, 0);
  for (size_t client = 0; client < 4; ++client) {
    EXPECT_TRUE(slow.uploads[client][0].value.equal(fast.uploads[client][0].value)) << client;
    EXPECT_FALSE(slow.uploads[4 + client][0].value.equal(fast.uploads[4 + client][0].value)) << client;
  }
}

TEST(PrototypeMethods, AClosingRoundFineTunesAndReleasesNothing) {
  for (const char* variant : {"sound", "paper"}) {
    const std::string method = fmt::format("variant = \"{}\"\n", variant);
    const auto open = small_setup(toml({.method = method, .adjacency = "replace-same-label", .rounds = 4}));
    const auto closing = small_setup(
        toml({.method = method + "closing_round = true\n", .adjacency = "replace-same-label", .rounds = 5}));
    privacy::Ledger of_open, of_closing;
    run(open, of_open);
    const Last last = run(closing, of_closing);
    EXPECT_EQ(of_closing.rows(), of_open.rows()) << variant;
    EXPECT_EQ(of_closing.events().back().noise_scale, of_open.events().back().noise_scale) << variant;
    EXPECT_EQ(last.rounds.back().uploads, 0) << variant;
    EXPECT_GT(last.rounds.back().samples, 0) << variant;
  }
}

// Equation 4 of the paper: clipping comes before clustering. In the first round features are a linear map of records, so
// that a longer record of the same direction is the same once it is clipped.
TEST(PrototypeMethods, AsPrintedClustersAreFoundAfterClipping) {
  for (const char* framework : {"mpft", "fedplvm"}) {
    const auto upload = [&](double length) {
      auto setup = changed(
          small_setup(toml({.framework = framework, .method = "variant = \"paper\"\nradius = 0.01", .rounds = 1})),
          [](config::RunSpec& spec) {
            spec.model = models::ModelOptions();
            spec.model.name = "adapter";
          });
      data::Records records = setup.dataset().train;
      const int64_t row = setup.partition().shard(0).train[0].item<int64_t>();
      records.x = records.x.clone();
      records.x[row] = records.x[row] * length;
      setup = setup.with_records(std::move(records));
      privacy::Ledger ledger;
      return run(setup, ledger).uploads.front();
    };
    const NamedTensors usual = upload(1), longer = upload(1000);
    for (size_t i = 0; i < usual.size(); ++i) {
      ASSERT_EQ(usual[i].value.sizes(), longer[i].value.sizes()) << framework;
      EXPECT_TRUE(at::allclose(usual[i].value, longer[i].value, 1e-4, 1e-6)) << framework << " " << usual[i].name;
    }
  }
}

TEST(PrototypeMethods, AsPrintedClaimsEpsilonAndProvesOtherwise) {
  for (const auto& framework : kFrameworks) {
    for (const char* mechanism : {"mechanism = \"igpp\"", "mechanism = \"vpp\""}) {
      const std::string options = fmt::format("variant = \"paper\"\n{}", mechanism);
      const auto setup = small_setup(toml({.framework = framework, .method = options}));
      privacy::Ledger ledger;
      run(setup, ledger);
      const auto cost = spent(ledger, setup);
      EXPECT_NEAR(cost.claimed, 2.0, 1e-6) << framework << ", " << mechanism;
      EXPECT_TRUE(std::isinf(cost.proven)) << framework << ": sizes are sent in the clear";
      EXPECT_FALSE(cost.why_unproven.empty());
    }
  }
  // With a public histogram there is a number, and it is far from the claim.
  const auto setup = small_setup(toml({.method = "variant = \"paper\"", .adjacency = "replace-same-label"}));
  privacy::Ledger ledger;
  run(setup, ledger);
  const auto cost = spent(ledger, setup);
  EXPECT_TRUE(std::isfinite(cost.proven));
  EXPECT_GT(cost.proven, 20.0);
}

TEST(PrototypeMethods, PrintedNoiseIsThePapers) {
  const auto setup = small_setup(
      toml({.method = "variant = \"paper\"\nmechanism = \"vpp\"\nrho = 0.5", .adjacency = "replace-same-label"}));
  privacy::Ledger ledger;
  run(setup, ledger);
  const at::Tensor sizes = data::class_counts(setup.partition(), setup.dataset(), 1)[0];
  double selection = 0;
  for (const auto& event : ledger.events()) {
    if (event.what == "dimensions") selection = event.noise_scale;
    if (event.what != "prototypes" || event.client != 0) continue;
    // 1/σ_A² + 1/σ_B² = 1/σ_ref² for every class, with σ = stddev·n_c/Δ.
    const nlohmann::json parameters = nlohmann::json::parse(event.parameters);
    const auto& groups = parameters["groups"];
    ASSERT_EQ(groups.size(), 6U);
    std::map<size_t, double> inverse;
    for (size_t g = 0; g < 6; ++g) {
      const double stddev = groups[g]["stddev"].get<double>() * sizes[static_cast<int64_t>(g % 3)].item<double>();
      inverse[g % 3] += std::pow(groups[g]["sensitivity"].get<double>() / stddev, 2);
    }
    const double reference = *privacy::printed_noise_multiplier(0.9 * 2, 1e-4, 3);
    for (const auto& [c, value] : inverse) EXPECT_NEAR(value * reference * reference, 1.0, 0.01) << "class " << c;
  }
  // λ = 2 d_A H T/ε₁, up to the grid.
  EXPECT_NEAR(selection, 2 * 2 * 0.1 * 3 / (0.1 * 2), 0.01 * selection);
}

TEST(PrototypeMethods, GroupAHoldsNoMoreThanItsShareOfTheRadius) {
  // A record that lies in one dimension altogether is cut to R·√(d_A/d) there.
  privacy::CellRule rule;
  rule.cells = 1;
  rule.parts = {{"A", 1, 10 * std::sqrt(0.25), 0.5}, {"B", 3, 10 * std::sqrt(0.75), 0.5}};
  const auto sum = [&](const at::Tensor& a, const at::Tensor& b) {
    NamedTensors values;
    values.push_back({"A", a});
    values.push_back({"B", b});
    values.push_back({"counts", at::zeros({1}, at::kLong)});
    privacy::Ledger ledger;
    const auto mechanism = privacy::GroupwiseGaussian::joint(1e-3, rule.groups());
    const auto bounded = [&] { return privacy::sum_cells(privacy::Contribution(std::move(values)), rule); };
    const auto channel = privacy::Channel::gaussian("x", privacy::Observer::kServer, mechanism, {});
    return clone(channel.release({.ledger = ledger}, bounded).values());
  };
  const NamedTensors made = sum(at::full({1, 1}, 1e9), at::zeros({1, 3}));
  EXPECT_NEAR(made[0].value.item<double>(), 5.0, 0.2);
  const NamedTensors broken = sum(at::full({1, 1}, NAN), at::full({1, 3}, 1.0));
  EXPECT_NEAR(broken[0].value.item<double>(), 0.0, 0.2) << "not a number counts as nothing";
  EXPECT_NEAR(broken[1].value[0][0].item<double>(), 1.0, 0.2);
}

TEST(PrototypeMethods, ClassesHeldByOneByNoneAndByOneRecord) {
  for (const auto& framework : kFrameworks) {
    for (const char* variant : {"sound", "paper"}) {
      for (const char* options : {"", "mechanism = \"vpp\"\ndcr = true", "mechanism = \"none\""}) {
        Settings settings{.framework = framework,
                          .method = fmt::format("variant = \"{}\"\n{}", variant, options),
                          .data = "clients = 3\npartition = \"pathological\"\nclasses_per_client = 1\n"};
        auto setup = small_setup(toml(settings));
        // Nobody holds class 2 any more, and one record alone is of class 1.
        at::Tensor y = setup.dataset().train.y;
        y.fill_(0);
        y[setup.partition().shard(0).train[0].item<int64_t>()] = 1;
        privacy::Ledger ledger;
        const Last last = run(setup, ledger);
        ASSERT_EQ(last.rounds.size(), 3U) << framework << ", " << variant;
        EXPECT_TRUE(last.rounds.back().diverged.empty()) << framework << ", " << variant;
        EXPECT_TRUE(all_finite(last.broadcast)) << framework << ", " << variant;
      }
    }
  }
}

TEST(PrototypeMethods, AClientOfOneRecord) {
  for (const char* variant : {"sound", "paper"}) {
    const Settings settings{
        .framework = "mpft",
        .method = fmt::format("variant = \"{}\"\nmechanism = \"vpp\"", variant),
        .data = "clients = 40\npartition = \"quantity\"\nalpha = 0.1\n",
    };
    const auto setup = small_setup(toml(settings));
    privacy::Ledger ledger;
    EXPECT_EQ(run(setup, ledger).rounds.size(), 3U);
  }
}

TEST(PrototypeMethods, HeadsMayDiffer) {
  const auto setup = small_setup(toml({.method = "heads = \"four\""}));
  privacy::Ledger ledger;
  const Last last = run(setup, ledger);
  EXPECT_GT(last.rounds.back().evaluation->over(&ClientScore::accuracy).mean, 0.5);
}

TEST(PrototypeMethods, Learn) {
  for (const auto& framework : kFrameworks) {
    for (const char* dcr : {"dcr = false", "dcr = true"}) {
      const auto setup = small_setup(
          toml({.framework = framework, .method = fmt::format("mechanism = \"none\"\n{}", dcr), .rounds = 15}));
      privacy::Ledger ledger;
      const Last last = run(setup, ledger);
      EXPECT_GT(last.rounds.back().evaluation->over(&ClientScore::accuracy).mean, 0.75) << framework << ", " << dcr;
    }
  }
}

TEST(PrototypeMethods, WhatCannotBeKeptIsRefused) {
  expect_refused(toml({.method = "variant = \"paper\"\nshrink = true"}), "shrink");
  expect_refused(toml({.method = "variant = \"paper\"\nencoder = \"dp-sgd\""}), "encoder");
  expect_refused(toml({.method = "encoder = \"dp-sgd\"\ncentre = true"}), "centre");
  expect_refused(toml({.method = "encoder = \"public\""}), "public_data");
  expect_refused(toml({.method = "mechanism = \"none\"\ncentre = true"}), "centre");
  expect_refused(toml({.method = "trained_projection = true"}), "trained_projection");
  EXPECT_THROW(changed(small_setup(toml({.method = "closing_round = true"})),
                       [](config::RunSpec& spec) { spec.federation.cohort = 2; })
                   .plan_for(0),
               UserError)
      << "who takes part in the last round must be everybody";
  expect_refused("[method]\nname = \"fedproto\"\n", "[privacy]");
  EXPECT_THROW(small_setup(toml({.method = "rho = 0.6"})), UserError) << "group A may not be the larger one";
  EXPECT_THROW(small_setup(toml({.method = "mechanism = \"dpp\""})), UserError);
}

TEST(PrototypeMethods, DiagnosticsSayWhatTheyMeasured) {
  const auto setup = small_setup(toml({.method = "mechanism = \"vpp\"\ndcr = true\ndiagnostics = true"}));
  privacy::Ledger ledger;
  const Last last = run(setup, ledger);
  for (const char* name : {"feature_norm", "teacher_gap", "score_information", "best_dimensions_found",
                           "prototype_seconds", "training_seconds"}) {
    EXPECT_TRUE(last.rounds.back().measures.contains(name)) << name;
  }
}

}  // namespace
}  // namespace sotto::federation
