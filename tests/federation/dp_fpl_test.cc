// DP-FPL and what it is compared with: what is released to whom, at what price, and that prompts learn.
#include "../data/make_files.h"
#include "../models/tiny_clip.h"
#include "../support/temp_folder.h"
#include "methods/prompts/prompt_file.h"
#include "models/vision_language/clip_model.h"
#include "models/weights/weights.h"
#include "privacy/accounting/gaussian.h"
#include "small_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <filesystem>
#include <set>

namespace sotto::federation {
namespace {

using ::testing::HasSubstr;

constexpr double kDelta = 1e-3;
const std::vector<std::string> kMembers = {"dp-fpl", "promptfl", "fedotp", "fedpgp"};

std::string config(const std::string& method, const std::string& options = "", const std::string& privacy = "",
                   const std::string& federation = "batch = 20\n", const std::string& data = "") {
  return fmt::format(
      "rounds = 3\n[data]\nclients = 4\n{}[federation]\nlr = 0.01\n{}{}[record]\nuploads = true\n[method]\nname = "
      "\"{}\"\nencoder = \"tiny\"\nlength = 8\n{}",
      data, federation, privacy, method, options);
}

std::string budget(double epsilon, const std::string& more = "") {
  return fmt::format("[privacy]\nepsilon = {}\ndelta = {}\nadjacency = \"zero-out\"\n{}", epsilon, kDelta, more);
}

privacy::Guarantee spent(const privacy::Ledger& ledger, const std::string& observer, int64_t client = 0) {
  privacy::Tally tally;
  for (const auto& [id, part] : ledger.tallies(observer)) {
    if (id == client || id == privacy::kEveryone) tally.add(part);
  }
  return tally.guarantee(kDelta);
}

TEST(DpFpl, SpendsItsBudgetWhereverGradientsAreBounded) {
  for (const std::string& method : kMembers) {
    for (const char* where : {"clip_at = \"text-features\"\n", "clip_at = \"prompt\"\n"}) {
      privacy::Ledger ledger;
      run(small_setup(config(method, where, budget(2))), ledger);
      EXPECT_LE(spent(ledger, "server").proven, 2.0) << method << " " << where;
      EXPECT_GT(spent(ledger, "server").proven, 1.98) << method << " " << where;
    }
  }
}

TEST(DpFpl, PoissonBatchesAreAmplified) {
  privacy::Ledger ledger;
  run(small_setup(config("dp-fpl", "batches = \"poisson\"\n", budget(2))), ledger);
  EXPECT_LE(spent(ledger, "server").proven, 2.0);
  EXPECT_GT(spent(ledger, "server").proven, 1.9);
  EXPECT_LT(ledger.events().front().sampling_rate, 1.0);
}

TEST(DpFpl, TheResidualAndTheRankCostNothing) {
  std::set<std::string> rows;
  for (const char* options :
       {"residual = true\nrank = 8\n", "residual = false\nrank = 8\n", "cut = true\n", "rank = 1\n", "rank = 0\n"}) {
    privacy::Ledger ledger;
    run(small_setup(config("dp-fpl", options, budget(2))), ledger);
    std::string all;
    for (const auto& event : ledger.events()) {
      all += fmt::format("{} {} {} {} {} {}\n", event.round, event.client, event.what, event.noise_scale,
                         event.sensitivity, event.parameters);
    }
    rows.insert(all);
  }
  EXPECT_EQ(rows.size(), 1U);
}

TEST(DpFpl, AsPrintedTheGlobalPromptStartsAtRandom) {
  const auto first = [](const std::string& options) {
    const auto setup = small_setup(config("dp-fpl", options, budget(2)));
    return setup.method().make_server(setup.public_context())->open().values.front().value;
  };
  const at::Tensor printed = first("variant = \"paper\"\n");
  EXPECT_TRUE(printed.equal(first("variant = \"paper\"\nstart = \"random\"\n")));
  EXPECT_NEAR(printed.std().item<double>(), 0.02, 0.005);
  EXPECT_FALSE(printed.equal(first("")));
  expect_refused(config("dp-fpl", "cut = true\nresidual = false\n", budget(2)), "set one of them");
}

TEST(DpFpl, OnlyTheGlobalPromptLeavesTheClient) {
  for (const char* privacy : {"", "with"}) {
    privacy::Ledger ledger;
    const Last last = run(small_setup(config("dp-fpl", "", *privacy ? budget(2) : "")), ledger);
    ASSERT_EQ(last.uploads.size(), 12U);
    for (const NamedTensors& upload : last.uploads) {
      ASSERT_EQ(upload.size(), 1U);
      EXPECT_EQ(upload[0].name, "global");
      EXPECT_EQ(upload[0].value.sizes(), at::IntArrayRef({8, 32}));
    }
  }
}

TEST(DpFpl, InTheClearNothingIsPromised) {
  privacy::Ledger ledger;
  run(small_setup(config("dp-fpl", "in_the_clear = true\n", budget(2, "unproven = [\"prompts\"]\n"))), ledger);
  EXPECT_TRUE(std::isinf(spent(ledger, "server").proven));
}

TEST(DpFpl, ATrustedServerSeesEverythingAndAPromptsUserTheBudget) {
  for (const std::string& method : kMembers) {
    for (const int cohort : {0, 2}) {
      const std::string federation = fmt::format("batch = 1000\ncohort = {}\n", cohort);
      const auto setup =
          small_setup(config(method, "clip_at = \"prompt\"\n", budget(2, "observer = \"public\"\n"), federation));
      privacy::Ledger ledger;
      run(setup, ledger);
      EXPECT_TRUE(std::isinf(spent(ledger, "server").proven)) << method;
      for (int64_t client = 0; client < 4; ++client) EXPECT_LE(spent(ledger, "public", client).proven, 2.0) << method;
      EXPECT_GT(spent(ledger, "public").proven, cohort == 0 ? 1.98 : 0.0) << method;
      // Two rows for a prompt's user, one that the server alone sees; without a local prompt one and one.
      std::multiset<std::string> seen;
      for (const auto& kind : ledger.kinds()) seen.insert(kind.what + " " + kind.mechanism);
      std::multiset<std::string> expected = {"global gradient trusted-server", "global prompt gaussian"};
      if (method != "promptfl") expected.insert("local prompt gaussian");
      EXPECT_EQ(seen, expected) << method;
    }
  }
}

TEST(DpFpl, AsPrintedTheClaimIsNotWhatTheNoiseProves) {
  for (const char* observer : {"", "observer = \"public\"\n"}) {
    privacy::Ledger ledger;
    run(small_setup(config("dp-fpl", "variant = \"paper\"\n", budget(2, observer))), ledger);
    const privacy::Guarantee user = spent(ledger, *observer ? "public" : "server");
    EXPECT_NEAR(user.claimed, 2.0, 1e-9);
    // u, v and p_G, each moved by 2C under noise of (C/20)·√(3·ln(1/δ))/2, three times.
    const double stddev = 10.0 / 20 * std::sqrt(3 * std::log(1 / kDelta)) / 2;
    const double multiplier = stddev / 20.0 / std::sqrt(3.0);
    // With so little of it, what rounding adds is no longer covered: nothing is proven.
    EXPECT_GT(privacy::gaussian_epsilon(std::sqrt(3.0) / multiplier, std::log(kDelta)), 1000);
    EXPECT_TRUE(std::isinf(user.proven));
  }
}

TEST(DpFpl, AsPrintedARoundIsOneBatchOfEveryClient) {
  const std::string privacy = "[privacy]\nepsilon = 2\ndelta = 1e-3\nadjacency = \"replace\"\n";
  for (const std::string& method : kMembers) {
    for (const std::string observer : {"", "observer = \"public\"\n"}) {
      const auto samples = [&](const std::string& options) {
        privacy::Ledger ledger;
        const auto setup =
            small_setup(config(method, "variant = \"paper\"\n" + options, privacy + observer, "batch = 5\n"));
        return run(setup, ledger).rounds.front().samples;
      };
      EXPECT_EQ(samples(""), 4 * 5) << method << " " << observer;
      EXPECT_EQ(samples("steps = 2\n"), 4 * 10) << method << " " << observer;
      EXPECT_EQ(samples("steps = 0\n"), small_setup(config(method)).dataset().train.size())
          << method << " " << observer;
    }
  }
  privacy::Ledger ledger;
  EXPECT_EQ(run(small_setup(config("dp-fpl", "steps = 1\n", "", "batch = 5\n")), ledger).rounds.front().samples, 4 * 5);
  expect_refused(config("dp-fpl", "steps = 1\n", budget(2)), "method.steps");
}

// And the server's sum has one row of each client.
TEST(DpFpl, AsPrintedTheBatchesOfARoundAreNotAlwaysTheSame) {
  const auto setup = small_setup(config("promptfl", "variant = \"paper\"\nclip = 1e-6\n",
                                        "[privacy]\nepsilon = 1e6\ndelta = 1e-3\nadjacency = \"replace\"\nobserver = "
                                        "\"public\"\n",
                                        "batch = 5\n"));
  privacy::Ledger ledger;
  const Last last = run(setup, ledger, 1);
  ASSERT_EQ(last.uploads.size(), 12U);
  EXPECT_FALSE(last.uploads[0].front().value.equal(last.uploads[4].front().value))
      << "the prompt hardly moves: only other records make another gradient";
  for (const NamedTensors& upload : last.uploads) EXPECT_LE(upload.front().value.norm().item<double>(), 1.0001e-6);
}

TEST(DpFpl, PromptsLearnWithoutNoiseAndWithLittle) {
  for (const std::string& method : kMembers) {
    for (const char* privacy : {"", "with"}) {
      const auto setup = changed(
          small_setup(config(method, "clip = 100\n", *privacy ? budget(1e5) : "", "batch = 20\nlocal_epochs = 2\n")),
          [](config::RunSpec& spec) { spec.rounds = 8; });
      privacy::Ledger ledger;
      const Last last = run(setup, ledger);
      EXPECT_LT(last.rounds.back().train_loss, 0.9 * last.rounds.front().train_loss) << method << " " << privacy;
      EXPECT_GT(last.rounds.back().evaluation->over(&ClientScore::accuracy).mean, 0.5) << method;
    }
  }
}

// Pictures through a CLIP archive that was trained here, private prompts for them, and one of these at somebody's else.
TEST(DpFpl, APromptIsLearntSavedAndUsed) {
  const test::TempFolder folder;
  const std::filesystem::path archive = folder / "colours.pt";
  models::write_state_dict(archive, models::train_tiny_clip()->weights());
  const auto blobs = small_setup(config("dp-fpl", "clip = 1\n", budget(8)));
  auto options = nlohmann::json::parse(blobs.spec().method_options);
  options["encoder"] = archive.string();
  options["length"] = 9;  // as many as "a photo of a" has in letters
  const config::RunSpec spec = config::with_method(blobs.spec(), "dp-fpl", methods::Variant::kSound, options);
  const auto backbone = models::make_clip_backbone(archive, false);
  auto data = std::make_shared<models::TaskData>(blobs.data());
  auto& dataset = data->dataset;
  dataset.class_names = models::kColourNames;
  for (data::Records* records : {&dataset.train, &dataset.test}) {
    const at::NoGradGuard no_grad;
    records->x = backbone->features(models::as_batch(models::colour_pictures(records->size(), 9)));
  }
  data->task.record_shape = {32};
  const federation::Setup setup(spec, data);
  privacy::Ledger ledger;
  const auto states = make_memory_store({});
  Last last;
  run_rounds(setup, *states, ledger, last, 1);
  EXPECT_LE(spent(ledger, "server").proven, 8.0);
  EXPECT_GT(last.rounds.back().evaluation->over(&ClientScore::accuracy).mean, 0.9);

  const auto client = setup.method().make_client(setup.client_context());
  client->select({3, last.broadcast}, states->get(2));
  const NamedTensors weights = client->selected_weights();
  ASSERT_TRUE(methods::holds_prompt(setup.spec(), weights));
  methods::write_prompt_file(folder / "prompt.safetensors",
                             methods::prompt_file_of(setup.spec(), dataset.class_names, 32, weights));
  const methods::PromptClassifier user(methods::read_prompt_file(folder / "prompt.safetensors"));
  const at::Tensor blue = user.probabilities(test::plain_png(40, 16, {60, 60, 140}), "blue.png");
  EXPECT_NEAR(blue.sum().item<double>(), 1.0, 1e-5);
  EXPECT_EQ(blue.argmax().item<int64_t>(), 2);
  EXPECT_EQ(user.probabilities(test::plain_png(16, 16, {140, 60, 60}), "red.png").argmax().item<int64_t>(), 0);
}

TEST(DpFpl, ClientsWithOneClassAndBatchesThatAreNotFull) {
  for (const std::string& method : kMembers) {
    for (const char* where : {"clip_at = \"text-features\"\n", "clip_at = \"prompt\"\n"}) {
      privacy::Ledger ledger;
      const Last last = run(small_setup(config(method, where, budget(4), "batch = 1000\n",
                                               "partition = \"pathological\"\nclasses_per_client = 1\n")),
                            ledger);
      const auto& scores = *last.rounds.back().evaluation;
      EXPECT_TRUE(last.rounds.back().diverged.empty());
      EXPECT_TRUE(std::isfinite(scores.over(&ClientScore::local_accuracy).mean));
      EXPECT_TRUE(std::isfinite(scores.over(&ClientScore::neighbour_accuracy).mean));
    }
  }
}

TEST(DpFpl, WhatCannotBeKeptIsRefused) {
  const auto trusted = budget(2, "observer = \"public\"\n");
  expect_refused(config("dp-fpl", "", trusted), "clip_at = \"prompt\"");
  expect_refused(config("dp-fpl", "clip_at = \"prompt\"\n", trusted, "local_epochs = 2\n"), "local_epochs = 1");
  expect_refused(config("dp-fpl", "", "", "optimizer = \"adam\"\n"), "plain descent");
  expect_refused(config("dp-fpl", "variant = \"paper\"\n"), "[privacy]");
  expect_refused(config("dp-fpl", "variant = \"paper\"\nbatches = \"poisson\"\n", budget(2)), "disjoint");
  expect_refused(config("dp-fpl", "rank = 9\n", budget(2)), "rank");
  expect_refused(config("dp-fpl", "", budget(2, "unit = \"client\"\n")), "protects a record");
  const std::string missing = fmt::format(
      "[privacy]\nepsilon = 2\ndelta = {}\nadjacency = \"add-remove\"\nrecords = 60\nobserver = \"public\"\n", kDelta);
  expect_refused(config("promptfl", "variant = \"paper\"\n", missing), "into other batches");
  small_setup(config("promptfl", "clip_at = \"prompt\"\n", missing)).plan_for(0);
  const auto features = small_setup(config("dp-fpl"));
  auto images = std::make_shared<models::TaskData>(features.data());
  images->dataset.kind = data::Kind::kImages;
  try {
    const federation::Setup refused(features.spec(), images);
    FAIL();
  } catch (const UserError& error) {
    EXPECT_THAT(error.what(), HasSubstr("data.features"));
  }
}

}  // namespace
}  // namespace sotto::federation
