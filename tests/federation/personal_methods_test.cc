// Personal methods: what is sent is what a method without them would send, and what stays is what they say.
#include "small_run.h"

#include <ATen/ATen.h>

#include <gtest/gtest.h>

#include <cmath>

namespace sotto::federation {
namespace {

constexpr int64_t kClients = 4;

std::string config(const std::string& method, double epsilon = 8, const std::string& federation = "lr = 0.2\n") {
  return fmt::format(
      "rounds = 3\n[data]\nclients = {}\n[federation]\nbatch = 20\n{}[privacy]\nepsilon = {}\ndelta = 1e-3\nadjacency "
      "= "
      "\"zero-out\"\n[method]\nname = {}\n",
      kClients, federation, epsilon, method);
}

// A run and what its clients keep.
struct Finished {
  explicit Finished(const Setup& of) : setup(of), states(make_memory_store({})) {
    run_rounds(setup, *states, ledger, last, 2);
  }

  methods::Broadcast broadcast() const { return {.round = 3, .values = last.broadcast}; }

  // The model that the client predicts with.
  NamedTensors model_of(int64_t client) const {
    const auto method = setup.method().make_client(setup.client_context());
    method->select(broadcast(), states->get(client));
    return clone(method->selected_weights());
  }

  double accuracy() const { return last.rounds.back().evaluation->over(&ClientScore::accuracy).mean; }
  double global_accuracy() const { return last.rounds.back().evaluation->global_accuracy; }

  Setup setup;
  std::unique_ptr<StateStore> states;
  privacy::Ledger ledger;
  Last last;
};

Finished finish(const std::string& toml) {
  return Finished(small_setup(toml));
}

// The same with other records at every client but the first.
Finished finish_among_others(const std::string& toml) {
  const Setup setup = small_setup(toml);
  auto data = std::make_shared<models::TaskData>(setup.data());
  at::Tensor others = at::ones({data->dataset.train.size()}, at::kBool);
  others.index_fill_(0, setup.partition().shard(0).train, at::scalar_tensor(false, at::kBool));
  data->dataset.train.x = data->dataset.train.x + 2 * others.unsqueeze(1);
  return Finished(Setup(setup.spec(), std::move(data)));
}

bool same(const NamedTensors& a, const NamedTensors& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const NamedTensor& x, const NamedTensor& y) {
    return x.name == y.name && at::equal(x.value, y.value);
  });
}

double distance(const NamedTensors& a, const NamedTensors& b) {
  double sum = 0;
  for (const auto& [name, value] : a) sum += (value - find_tensor(b, name)).square().sum().item<double>();
  return std::sqrt(sum);
}

double farthest_from_broadcast(const Finished& run) {
  double most = 0;
  for (int64_t i = 0; i < kClients; ++i) most = std::max(most, distance(run.last.broadcast, run.model_of(i)));
  return most;
}

TEST(MrMtl, WithoutItsPullClientsAreAlone) {
  const std::string alone = config("\"mr-mtl\"") + "lambda = 0\n", held = config("\"mr-mtl\"") + "lambda = 1\n";
  EXPECT_TRUE(same(finish(alone).model_of(0), finish_among_others(alone).model_of(0)));
  EXPECT_FALSE(same(finish(held).model_of(0), finish_among_others(held).model_of(0)));
}

TEST(MrMtl, WithAnEndlessPullIsOneModel) {
  const Finished pulled = finish(config("\"mr-mtl\"") + "lambda = 1e30\n"), one = finish(config("\"ldp-fedavg\""));
  EXPECT_TRUE(same(pulled.last.broadcast, one.last.broadcast));
  EXPECT_EQ(farthest_from_broadcast(pulled), 0);
  EXPECT_EQ(pulled.global_accuracy(), one.global_accuracy());
}

TEST(MrMtl, PullsHarderWithLambda) {
  double last = INFINITY;
  for (const char* lambda : {"0", "0.5", "4", "100"}) {
    const double reached = farthest_from_broadcast(finish(config("\"mr-mtl\"") + "lambda = " + lambda + "\n"));
    EXPECT_LT(reached, last) << lambda;
    last = reached;
  }
}

TEST(MrMtl, CostsWhatDpSgdCosts) {
  const Finished personal = finish(config("\"mr-mtl\"")), shared = finish(config("\"ldp-fedavg\""));
  ASSERT_EQ(personal.ledger.rows(), shared.ledger.rows());
  for (size_t i = 0; i < personal.ledger.events().size(); ++i) {
    EXPECT_EQ(personal.ledger.events()[i].noise_scale, shared.ledger.events()[i].noise_scale);
    EXPECT_EQ(personal.ledger.events()[i].steps, shared.ledger.events()[i].steps);
  }
}

// Normalised descent: the noise in a client's own logits ends at logit_noise, however much of it is its own.
TEST(MrMtl, TheStepFollowsFromTheNoiseThatAClientKeeps) {
  for (const double lambda : {0.0, 1.0, 1e30}) {
    const federation::Setup any =
        small_setup(config("\"mr-mtl\"\ndescent = \"normalised\"\nlargest_step = 1e9", 1, "") +
                    fmt::format("lambda = {}\n", lambda));
    const Finished run(changed(any, [](config::RunSpec& spec) {
      spec.model.name = "linear";
      spec.model.hidden.clear();
    }));
    const double coordinates = 3 * 7, rounds = 3, m = kClients, kept = 1 / ((1 + lambda) * (1 + lambda));
    const double of_a_client = run.last.rounds.front().noise_norm / m / std::sqrt(coordinates);
    double own = 0;
    for (int t = 1; t <= 3; ++t) own += std::pow(kept, t);
    EXPECT_NEAR(of_a_client * std::sqrt(rounds / m + own * (1 - 1 / m)), 1.2, 0.02) << lambda;
  }
}

TEST(PersonalMethods, SendWhatTheirSharedPartAloneWouldSend) {
  const Finished shared = finish(config("\"ldp-fedavg\""));
  for (const char* method : {"\"ditto\"", "\"apfl\""}) {
    const Finished personal = finish(config(method));
    EXPECT_TRUE(same(personal.last.broadcast, shared.last.broadcast)) << method;
    EXPECT_EQ(personal.global_accuracy(), shared.global_accuracy());
    EXPECT_EQ(personal.ledger.rows(), shared.ledger.rows());
    EXPECT_GT(farthest_from_broadcast(personal), 0.01) << method;
  }
  const Finished head = finish(config("\"dp-head\"", 8, ""));
  for (const char* method : {"\"ditto\"\ndescent = \"normalised\"", "\"apfl\"\ndescent = \"normalised\""}) {
    EXPECT_TRUE(same(finish(config(method)).last.broadcast, head.last.broadcast)) << method;
  }
}

TEST(PersonalMethods, KeepWhatNoNoiseHidesRecordsIn) {
  for (const auto& [method, without_noise] : std::map<std::string, bool>{
           {"mr-mtl", false}, {"fedper", false}, {"ditto", true}, {"apfl", true}, {"fedrep", true}}) {
    const federation::Setup setup = small_setup(config("\"" + method + "\""));
    EXPECT_EQ(setup.method().fits_without_noise(setup.spec()), without_noise) << method;
  }
}

TEST(Ditto, ItsLimitsAreAloneAndGlobal) {
  const std::string alone = config("\"ditto\"") + "lambda = 0\n", held = config("\"ditto\"") + "lambda = 1\n";
  EXPECT_TRUE(same(finish(alone).model_of(0), finish_among_others(alone).model_of(0)));
  EXPECT_FALSE(same(finish(held).model_of(0), finish_among_others(held).model_of(0)));
  const Finished tied(
      changed(small_setup(config("\"ditto\"") + "lambda = 1e30\n"), [](config::RunSpec& spec) { spec.rounds = 1; }));
  const methods::Broadcast received = tied.setup.method().make_server(tied.setup.public_context())->open();
  EXPECT_EQ(distance(received.values, tied.model_of(0)), 0);
}

TEST(Ditto, IsWorthHavingWhereNoiseDrownsTheGlobalModel) {
  const Finished loud = finish(config("\"ditto\"", 0.05) + "lambda = 0.01\n");
  EXPECT_GT(loud.accuracy(), loud.global_accuracy() + 0.2);
}

TEST(Apfl, ItsEndsAreTheGlobalModelAndTheClientsOwn) {
  const std::string global = config("\"apfl\"") + "mixture = 0\nadapt = false\n";
  EXPECT_EQ(farthest_from_broadcast(finish(global)), 0);
  const std::string own = config("\"apfl\"") + "mixture = 1\nadapt = false\n";
  EXPECT_TRUE(same(finish(own).model_of(0), finish_among_others(own).model_of(0)));
}

// From the global model on, a client's own goes downhill in the first round, and so does the loss along the way to it.
TEST(Apfl, LearnsHowMuchOfItsOwnModelToTake) {
  const auto mixture = [](const std::string& options) {
    const Finished run(
        changed(small_setup(config("\"apfl\"") + options), [](config::RunSpec& spec) { spec.rounds = 1; }));
    return find_tensor(run.states->get(0).values(), "own.mixture").item<double>();
  };
  EXPECT_GT(mixture(""), 0.5);
  EXPECT_LE(mixture("mixture = 1\n"), 1.0);
  EXPECT_EQ(mixture("adapt = false\n"), 0.5);
}

TEST(FedPer, SharesABodyAndIsDpSgdWithAPersonalHead) {
  const Finished personal = finish(config("\"fedper\""));
  EXPECT_FALSE(personal.last.broadcast.empty());
  for (const auto& [name, value] : personal.last.broadcast) EXPECT_FALSE(name.starts_with("head.")) << name;
  const Finished same_model(
      changed(small_setup(config("\"ldp-fedavg\"")), [](config::RunSpec& spec) { spec.model.personal = {"head."}; }));
  EXPECT_TRUE(same(personal.last.broadcast, same_model.last.broadcast));
  EXPECT_TRUE(same(personal.model_of(1), same_model.model_of(1)));
}

TEST(FedRep, FitsAHeadThatNothingSentDependsOn) {
  const Finished noisy = finish(config("\"fedper\"", 0.5)), fitted = finish(config("\"fedrep\"", 0.5));
  EXPECT_TRUE(same(noisy.last.broadcast, fitted.last.broadcast));
  EXPECT_FALSE(same(noisy.model_of(0), fitted.model_of(0)));
  EXPECT_GT(fitted.accuracy(), noisy.accuracy());
}

TEST(FedPer, NeedsABody) {
  for (const char* method : {"\"fedper\"", "\"fedrep\""}) {
    try {
      changed(small_setup(config(method)), [](config::RunSpec& spec) {
        spec.model.name = "linear";
        spec.model.hidden.clear();
      });
      ADD_FAILURE() << "accepted";
    } catch (const UserError& error) {
      EXPECT_THAT(error.what(), ::testing::HasSubstr("no body to share"));
    }
  }
}

}  // namespace
}  // namespace sotto::federation
