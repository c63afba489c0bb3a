// Class means from noisy sums, tried on a small federation.
#include "small_run.h"

#include <gtest/gtest.h>

#include <cmath>

namespace sotto::federation {
namespace {

std::string config(double epsilon, int rounds, const std::string& options = "",
                   const std::string& adjacency = "zero-out") {
  return fmt::format(
      "rounds = {}\n[data]\nclients = 4\n[privacy]\nepsilon = {}\ndelta = 1e-3\nadjacency = \"{}\"\n{}[method]\nname = "
      "\"dp-prototypes\"\n{}",
      rounds, epsilon, adjacency, adjacency == "add-remove" ? "records = 60\n" : "", options);
}

// Features as they are, of norm 1.
Setup on_linear(const std::string& toml) {
  const Setup base = small_setup(toml);
  return changed(base, [](config::RunSpec& spec) {
    spec.model.name = "linear";
    spec.model.hidden.clear();
  });
}

double accuracy(const Setup& setup) {
  privacy::Ledger ledger;
  return run(setup, ledger).rounds.back().evaluation->global_accuracy;
}

double proven(const privacy::Ledger& ledger, int64_t client) {
  return ledger.tallies("server").at(client).proven(1e-3);
}

TEST(DpPrototypes, LearnsInOneRound) {
  EXPECT_GT(accuracy(on_linear(config(50, 1))), 0.9);
  EXPECT_GT(accuracy(on_linear(config(4, 2))), 0.85);
  EXPECT_LT(accuracy(on_linear(config(0.001, 1))), 0.6) << "a tiny budget buys nothing";
}

TEST(DpPrototypes, SpendsTheBudgetAndNoMoreHoweverManyRounds) {
  for (const char* adjacency : {"zero-out", "add-remove", "replace", "replace-same-label"}) {
    for (const int rounds : {1, 2, 5}) {
      const auto setup = on_linear(config(3, rounds, "", adjacency));
      privacy::Ledger ledger;
      run(setup, ledger);
      EXPECT_LE(proven(ledger, 0), 3.0 * (1 + 1e-9)) << adjacency << " " << rounds;
      EXPECT_GT(proven(ledger, 0), 2.95) << adjacency << " " << rounds;
      privacy::Tally planned;
      for (const privacy::Channel& channel : setup.plan_for(0)) planned.add(channel.terms(), channel.times());
      EXPECT_NEAR(planned.proven(1e-3), proven(ledger, 0), 1e-6);
    }
  }
}

TEST(DpPrototypes, LaterRoundsHaveASmallerBound) {
  const auto setup = on_linear(config(50, 3));
  privacy::Ledger ledger;
  run(setup, ledger);
  std::map<int64_t, double> sensitivity;
  for (const privacy::Event& event : ledger.events()) sensitivity[event.round] = event.sensitivity;
  EXPECT_LT(sensitivity[2], sensitivity[1]);
  EXPECT_NEAR(sensitivity[3], sensitivity[2], 0.1 * sensitivity[2]);
}

TEST(DpPrototypes, IsResumedBitForBit) {
  struct First : Last {
    void checkpoint(const Checkpoint& now) override {
      Last::checkpoint(now);
      if (!point) point = {now.round, {now.broadcast.round, clone(now.broadcast.values)}, clone(now.server_state)};
    }
    std::optional<Checkpoint> point;
  };
  const auto setup = changed(on_linear(config(5, 4)), [](config::RunSpec& spec) { spec.record.checkpoint_every = 2; });
  privacy::Ledger ledger, second;
  const auto whole = run<First>(setup, ledger);
  Last resumed;
  const auto states = make_memory_store({});
  run_rounds(setup, *states, second, resumed, 1, whole.point);
  ASSERT_EQ(whole.broadcast.size(), resumed.broadcast.size());
  for (size_t i = 0; i < whole.broadcast.size(); ++i) {
    EXPECT_TRUE(at::equal(whole.broadcast[i].value, resumed.broadcast[i].value)) << whole.broadcast[i].name;
  }
}

TEST(DpPrototypes, ClientsMayTuneWhatTheyGet) {
  const auto setup = changed(on_linear(config(4, 2)), [](config::RunSpec& spec) {
    spec.federation.fine_tune = 2;
    spec.federation.fine_tune_lr = 0.5;
  });
  privacy::Ledger ledger;
  EXPECT_GT(run(setup, ledger).rounds.back().evaluation->over(&ClientScore::accuracy).mean, 0.85);
  EXPECT_LE(proven(ledger, 0), 4.0 * (1 + 1e-9));
}

TEST(DpPrototypes, SaysWhatItNeeds) {
  EXPECT_THROW(small_setup(config(1, 1, "shape = \"public\"\n")), UserError);
  EXPECT_THROW(small_setup(config(1, 1, "public_data = \"mnist\"\n")), UserError);
  EXPECT_THROW(small_setup(config(1, 1, "first_share = 1\n")), UserError);
  expect_refused("rounds = 1\n[data]\nclients = 4\n[method]\nname = \"dp-prototypes\"\n", "needs a [privacy] section");
}

}  // namespace
}  // namespace sotto::federation
