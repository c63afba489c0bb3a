// dp-head: its step follows from the noise, and its server from the noisy steps.
#include "methods/parts/averaging.h"
#include "small_run.h"

#include <ATen/ATen.h>

#include <gtest/gtest.h>

#include <cmath>

namespace sotto::federation {
namespace {

Setup head_setup(const std::string& options = "", double epsilon = 5, int rounds = 10,
                 const std::string& federation = "") {
  const Setup any = small_setup(fmt::format(
      "rounds = {}\n[data]\nclients = 4\n[federation]\n{}[privacy]\nepsilon = {}\ndelta = 1e-3\nadjacency = "
      "\"zero-out\"\n[method]\nname = \"dp-head\"\n{}",
      rounds, federation, epsilon, options));
  return changed(any, [](config::RunSpec& spec) {
    spec.model.name = "linear";
    spec.model.hidden.clear();
  });
}

double accuracy(const Setup& setup) {
  privacy::Ledger ledger;
  return run(setup, ledger).rounds.back().evaluation->global_accuracy;
}

// The noise that reaches a logit, of features of norm 1: what `logit_noise` promises.
double logit_noise(const Setup& setup, double momentum) {
  privacy::Ledger ledger;
  const Last result = run(setup, ledger);
  const double clients = 4, coordinates = 3 * 7, rounds = static_cast<double>(result.rounds.size());
  const double of_a_client = result.rounds.front().noise_norm / clients;
  return of_a_client / std::sqrt(coordinates * clients) * std::sqrt(rounds) / (1 - momentum);
}

TEST(DpHead, LearnsWithoutAnythingToTune) {
  EXPECT_GT(accuracy(head_setup("", 5)), 0.8);
  EXPECT_LT(accuracy(head_setup("", 0.001)), 0.7);
}

TEST(DpHead, TheStepPutsTheStatedNoiseIntoALogit) {
  for (const double epsilon : {0.3, 3.0}) {
    EXPECT_NEAR(logit_noise(head_setup("largest_step = 1e9\n", epsilon), 0.8), 1.2, 0.02) << epsilon;
  }
  EXPECT_NEAR(logit_noise(head_setup("logit_noise = 0.1\nmomentum = 0\n", 1, 3), 0), 0.1, 0.002);
  EXPECT_NEAR(logit_noise(head_setup("logit_noise = 0.1\n", 1, 3, "local_epochs = 4\n"), 0.8), 0.1, 0.002);
  EXPECT_LT(logit_noise(head_setup("largest_step = 0.5\n", 3), 0.8), 0.1);
}

TEST(DpHead, AFullBatchIsOneTouchAndAllocatedBatchesAreSteps) {
  const auto terms = [](const std::string& options) {
    return head_setup(options, 5, 10, "batch = 20\n").plan_for(0)[0].terms();
  };
  EXPECT_EQ(terms("").batches, 1);
  EXPECT_EQ(terms("").steps, 1);
  EXPECT_EQ(terms("steps = \"allocated\"\n").batches, 3);
  EXPECT_LT(terms("steps = \"allocated\"\n").noise_scale, terms("").noise_scale);
}

TEST(DpHead, RefusesSettingsThatItWouldNotLookAt) {
  for (const char* setting : {"lr = 0.1\n", "optimizer = \"adam\"\n", "momentum = 0.9\n", "weight_decay = 0.1\n"}) {
    const std::string key(setting, std::string_view(setting).find(' '));
    try {
      head_setup("", 5, 10, setting).plan_for(0);
      ADD_FAILURE() << "accepted: " << setting;
    } catch (const UserError& error) {
      EXPECT_THAT(error.what(), ::testing::HasSubstr("federation." + key + " is not used"));
    }
  }
  EXPECT_NO_THROW(head_setup("", 5, 10, "lr = 0.05\noptimizer = \"sgd\"\n").plan_for(0));
}

class HeadServer : public ::testing::Test {
 protected:
  // The server's next broadcast if the clients' mean lies one step of 1 from its iterate.
  methods::Broadcast step(methods::ServerMethod& server, const methods::Broadcast& from) {
    NamedTensors values = {{"head.weight", find_tensor(from.values, "iterate.head.weight") + 1}};
    values.push_back(methods::declared_weight(60));
    const int64_t round = from.round + 1;
    server.accept(privacy::Channel::in_the_clear("model", "test")
                      .release_clear({.ledger = ledger_, .round = round, .client = 0},
                                     [&] { return privacy::Contribution(std::move(values)); }));
    return aggregate(server, round);
  }

  methods::Broadcast aggregate(methods::ServerMethod& server, int64_t round) {
    return server.aggregate({{.ledger = ledger_, .round = round, .client = privacy::kEveryone}, {}});
  }

  static std::unique_ptr<methods::ServerMethod> make(const federation::Setup& setup) {
    return methods::find_method("dp-head").make_server(setup.public_context());
  }

  static double value(const methods::Broadcast& broadcast, const std::string& name) {
    const at::Tensor tensor = find_tensor(broadcast.values, name);
    EXPECT_EQ(tensor.min().item<double>(), tensor.max().item<double>());
    return tensor.max().item<double>();
  }

  privacy::Ledger ledger_;
};

TEST_F(HeadServer, HasMomentumAndPublishesAnAverage) {
  const federation::Setup setup = head_setup();
  const auto server = make(setup);
  const auto first = step(*server, server->open());
  EXPECT_EQ(value(first, "iterate.head.weight"), 1);
  EXPECT_EQ(value(first, "head.weight"), 1);
  const auto second = step(*server, first);
  EXPECT_NEAR(value(second, "iterate.head.weight"), 1 + 1.8, 1e-6);
  EXPECT_NEAR(value(second, "head.weight"), (1 * 1 + 256 * 2.8) / 257, 1e-6);
  const auto silent = aggregate(*server, 3);
  EXPECT_TRUE(find_tensor(silent.values, "head.weight").equal(find_tensor(second.values, "head.weight")));

  const auto resumed = make(setup);
  resumed->restore(second, server->state());
  const auto third = step(*server, second), again = step(*resumed, second);
  for (const auto& [name, tensor] : third.values) EXPECT_TRUE(tensor.equal(find_tensor(again.values, name))) << name;
}

TEST_F(HeadServer, CanPublishTheLastIterate) {
  const federation::Setup setup = head_setup("averaging = 0\nmomentum = 0\n");
  const auto server = make(setup);
  const auto second = step(*server, step(*server, server->open()));
  EXPECT_NEAR(value(second, "head.weight"), 2, 1e-6);
}

}  // namespace
}  // namespace sotto::federation
