// Personal models on top of a global one: better for their clients, and nothing more leaves.
#include "small_run.h"

#include <ATen/ATen.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace sotto::federation {
namespace {

Setup tuned_setup(const std::string& federation, const std::string& method = "dp-head",
                  const std::string& data = "partition = \"pathological\"\nclasses_per_client = 1\n") {
  const Setup any = small_setup(
      fmt::format("rounds = 5\n[data]\nclients = 3\n{}[federation]\n{}[method]\nname = \"{}\"\n{}", data, federation,
                  method, methods::find_method(method).units.empty() ? "" : privacy_terms(method)));
  return changed(any, [](config::RunSpec& spec) {
    spec.model.name = "linear";
    spec.model.hidden.clear();
  });
}

constexpr const char* kTuned = "eval_every = 2\nfine_tune = 3\nfine_tune_lr = 5\n";

TEST(FineTuning, MakesClientsNoWorseAndChangesNothingThatLeaves) {
  privacy::Ledger plain_ledger, tuned_ledger;
  const Last plain = run(tuned_setup("eval_every = 2\n"), plain_ledger);
  const Last tuned = run(tuned_setup(kTuned), tuned_ledger);
  ASSERT_EQ(plain.broadcast.size(), tuned.broadcast.size());
  for (size_t i = 0; i < plain.broadcast.size(); ++i) {
    EXPECT_TRUE(at::equal(plain.broadcast[i].value, tuned.broadcast[i].value)) << plain.broadcast[i].name;
  }
  EXPECT_EQ(plain_ledger.rows(), tuned_ledger.rows());
  const Evaluation& before = *plain.rounds.back().evaluation;
  const Evaluation& after = *tuned.rounds.back().evaluation;
  EXPECT_EQ(before.global_accuracy, after.global_accuracy);
  EXPECT_GT(after.over(&ClientScore::accuracy).mean, 0.95) << "one class each: a client can know it";
  EXPECT_LE(before.over(&ClientScore::accuracy).mean, after.over(&ClientScore::accuracy).mean);
  EXPECT_GT(tuned.rounds[1].evaluation->over(&ClientScore::accuracy).mean, 0.95) << "in evaluated rounds as well";
}

TEST(FineTuning, WorksForMethodsWithAGlobalModelOnly) {
  for (const char* method : {"fedavg", "fedprox", "ldp-fedavg", "dp-fedavg"}) {
    privacy::Ledger ledger;
    const Last result = run(tuned_setup(kTuned, method, ""), ledger);
    EXPECT_EQ(result.rounds.size(), 5U) << method;
    EXPECT_EQ(result.rounds.back().evaluation->clients.size(), 3U) << method;
  }
  for (const char* method : {"local-only", "fedproto"}) {
    try {
      tuned_setup(kTuned, method, "").plan_for(0);
      FAIL() << method;
    } catch (const UserError& error) {
      EXPECT_THAT(error.what(), ::testing::HasSubstr("federation.fine_tune"));
    }
  }
}

TEST(FineTuning, ATunedModelMustNotLeave) {
  const auto fits_without_noise = [](const auto& setup) { return setup.method().fits_without_noise(setup.spec()); };
  EXPECT_FALSE(fits_without_noise(tuned_setup("")));
  EXPECT_TRUE(fits_without_noise(tuned_setup(kTuned)));
}

TEST(OwnCentre, IsForWhatStaysAtHome) {
  const auto setup = [](const std::string& method) {
    return tuned_setup("eval_every = 5\n", method, "centre = \"own\"\n");
  };
  try {
    setup("dp-head");
    FAIL() << "a client's mean moves all its records, and no noise covers it";
  } catch (const UserError& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("data.centre"));
  }
  const auto alone = setup("local-only");
  for (int64_t client = 0; client < 3; ++client) {
    const at::Tensor own = alone.dataset().train.x.index_select(0, alone.partition().shard(client).train);
    EXPECT_LT(own.mean(0).abs().max().item<double>(), 1e-5) << client;
  }
}

// As attacks and audits make their variants of a run.
TEST(OwnCentre, IsTakenOffOnceWhateverSettingsFollow) {
  const auto once = tuned_setup("eval_every = 5\n", "local-only", "centre = \"own\"\nnormalise = true\n");
  const auto again = once.with(once.spec());
  EXPECT_TRUE(at::equal(again.dataset().train.x, once.dataset().train.x));
}

TEST(OwnCentre, TheCeilingWithoutNoiseHasACentreToo) {
  const auto setup = small_setup(
      "rounds = 3\n[data]\nclients = 4\n[method]\nname = \"fedproto\"\nmechanism = \"none\"\ncentre = true\nwidth = "
      "8\n");
  privacy::Ledger ledger;
  const Last result = run(setup, ledger);
  const auto events = ledger.events();
  EXPECT_EQ(std::count_if(events.begin(), events.end(), [](const auto& event) { return event.what == "centre"; }), 4);
  const at::Tensor centre = find_tensor(result.broadcast, "centre");
  ASSERT_TRUE(centre.defined());
  const auto client = setup.method().make_client(setup.client_context());
  client->select(setup.method().make_server(setup.public_context())->open(), {});
  EXPECT_TRUE(at::allclose(centre, client->features(setup.dataset().train.x).mean(0), 1e-3, 1e-4));
}

TEST(Validation, IsMeasuredForGlobalAndPersonalModels) {
  for (const char* federation : {"eval_every = 5\n", kTuned}) {
    privacy::Ledger ledger;
    const Last result = run(tuned_setup(federation, "dp-head", "validation = 0.2\n"), ledger);
    const Evaluation& evaluation = *result.rounds.back().evaluation;
    EXPECT_GT(evaluation.over(&ClientScore::validation_accuracy).mean, 0.5);
  }
  privacy::Ledger ledger;
  const Last without = run(tuned_setup("eval_every = 5\n"), ledger);
  EXPECT_FALSE(std::isfinite(without.rounds.back().evaluation->over(&ClientScore::validation_accuracy).mean));
}

}  // namespace
}  // namespace sotto::federation
