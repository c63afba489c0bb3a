#include "artifacts/run_summary.h"

#include "../support/expect_user_error.h"
#include "base/error.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace sotto::artifacts {
namespace {

using federation::ClientScore;
using nlohmann::json;
using privacy::Basis;

// With something in every field.
RunSummary full() {
  RunSummary summary = {.name = "first",
                        .dataset = "mnist",
                        .model = "cnn",
                        .method = "pac-dp",
                        .variant = "paper",
                        .noise = "secure",
                        .config_hash = "abc",
                        .seed = 7,
                        .rounds = 3,
                        .seconds = 0.1,
                        .samples_per_second = 1.0 / 3,
                        .upload_bytes = 12,
                        .diverged_steps = 1,
                        .noise_total = 2.5,
                        .abstained = {{"St Mary", 2}}};
  ClientScore score = {.client = 0, .accuracy = 1.0 / 3, .balanced_accuracy = 0.25, .auroc = 0.7};
  score.local_accuracy = 0.5;
  score.neighbour_accuracy = 0.125;
  score.validation_accuracy = 0.375;
  score.global_test_accuracy = 0.3;
  summary.evaluation.clients = {score, {.client = 2, .accuracy = 0.9}, {.client = 10, .accuracy = 0.8}};
  summary.evaluation.global_accuracy = 0.6;
  summary.evaluation.global_auroc = 0.55;
  summary.evaluation.domain_accuracy = {{"amazon", 0.1}, {"webcam", 0.2}};
  summary.last_ten = {.evaluations = 3,
                      .accuracy = 1.0 / 7,
                      .accuracy_global = 0.5,
                      .global_test_accuracy = 0.4,
                      .local_accuracy = 0.75,
                      .neighbour_accuracy = 0.125};
  const EpsilonSpread spread = {.min = 0.5, .median = 1.0 / 3, .max = 4};
  summary.privacy = {.declared = {.observer = "server", .claimed = spread, .proven = spread},
                     .observers = {{.observer = "server", .claimed = spread, .proven = spread},
                                   {.observer = "public", .why_unproven = "sent without noise"}},
                     .basis = Basis::kSimulated,
                     .basis_why = "noise can be recomputed from the seed",
                     .delta = 1e-5,
                     .adjacency = "replace",
                     .unit = "record",
                     .ledger = privacy::LedgerEnd{.rows = 9, .head = "ff"}};
  return summary;
}

TEST(RunSummary, ReadsBackToTheLastDigit) {
  const json written = json::parse(to_json(full()).dump());
  const RunSummary read = run_summary(written);
  EXPECT_EQ(read.privacy, full().privacy);
  EXPECT_EQ(read.abstained, full().abstained);
  EXPECT_EQ(read.evaluation.clients[2].client, 10) << "clients in the order of their numbers, not of their digits";
  EXPECT_EQ(to_json(read), written);
}

TEST(RunSummary, WhatIsNotDefinedIsNullAndReadsBackAsSuch) {
  const json written = to_json(RunSummary());
  EXPECT_TRUE(written["noise_total"].is_null());
  EXPECT_TRUE(written["privacy"]["delta"].is_null());
  const RunSummary read = run_summary(written);
  EXPECT_TRUE(std::isnan(read.noise_total));
  EXPECT_TRUE(read.evaluation.clients.empty());
  EXPECT_FALSE(read.privacy.declared.proven.has_value());
}

TEST(RunSummary, WhereNoBasisWasWrittenTheNoiseTells) {
  const auto read = [](const char* noise) {
    json value = to_json(full());
    value["privacy"].erase("basis");
    value["noise"] = noise;
    return run_summary(value).privacy.basis;
  };
  EXPECT_EQ(read("replay"), Basis::kSimulated);
  EXPECT_EQ(read("secure"), Basis::kProven);
  EXPECT_EQ(read("none"), Basis::kProven);
  json silent = to_json(full());
  silent["privacy"].erase("basis");
  silent.erase("noise");
  EXPECT_EQ(run_summary(silent).privacy.basis, Basis::kSimulated);
  EXPECT_EQ(run_summary(to_json(full())).privacy.basis, Basis::kSimulated) << "what it says, not what its noise says";
}

TEST(RunSummary, WhatLacksAFieldSaysWhich) {
  for (const char* key : {"accuracy", "dataset", "method", "privacy", "rounds", "seconds", "seed"}) {
    json value = to_json(full());
    value.erase(key);
    EXPECT_USER_ERROR(run_summary(value), std::string("it has no '") + key);
  }
  json value = to_json(full());
  value["privacy"].erase("observers");
  EXPECT_USER_ERROR(run_summary(value), "it has no 'privacy.observers'");
  value = to_json(full());
  value["rounds"] = "three";
  EXPECT_USER_ERROR(run_summary(value), "'rounds' is not what it should be");
}

}  // namespace
}  // namespace sotto::artifacts
