// Finished runs that get more rounds: what comes out is what as many rounds from the start would have given.
#include "program.h"

namespace sotto {
namespace {

class Extension : public Program {
 protected:
  // Into the run `name`.
  void run(const std::string& config, const std::string& name, const std::string& more) const {
    const Result result = sotto(fmt::format("run {} --out {} --quiet {}", config, name, more));
    ASSERT_EQ(result.exit_code, 0) << result.err;
  }

  void extend(const std::string& name, int64_t rounds) const {
    const Result result = sotto(fmt::format("run {} --resume --quiet --set rounds={}", name, rounds));
    ASSERT_EQ(result.exit_code, 0) << result.err;
  }

  // Of everything but clocks and the ledger's chain, which holds them.
  json result_of(const std::string& name) const {
    json value = summary(name);
    for (const char* clock : {"seconds", "samples_per_second", "checksum"}) value.erase(clock);
    value["privacy"].erase("ledger_head");
    return value;
  }

  std::string model_of(const std::string& name, const std::string& more = "") const {
    const Result result = sotto(fmt::format("export {} -o model.safetensors --quiet {}", name, more));
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return read_file(folder_ / "model.safetensors");
  }

  void write_private(const std::string& name, const std::string& root, const std::string& method) {
    write(name, root, "schema = \"" + (folder_ / "table.schema.json").string() + "\"",
          "[method]\nname = \"" + method + "\"\n[privacy]\nepsilon = 2\ndelta = 1e-5\nadjacency = \"replace\"\n");
  }
};

TEST_F(Extension, MoreRoundsGiveWhatTheyWouldHaveGivenFromTheStart) {
  for (const char* method : {"fedavg", "local-only"}) {
    const std::string config = fmt::format("config.toml --set method.name={} --set federation.cohort=3", method);
    const std::string whole = std::string(method) + "-whole", part = std::string(method) + "-part";
    run(config, whole, "--set rounds=5");
    run(config, part, "--set rounds=2");
    extend(part, 4);
    extend(part, 5);
    EXPECT_EQ(result_of(part), result_of(whole));
    const std::string whose = std::string(method) == "fedavg" ? "" : "--client 1";
    EXPECT_EQ(model_of(part, whose), model_of(whole, whose));
    EXPECT_EQ(sotto("ledger verify " + part).exit_code, 0);
  }
}

TEST_F(Extension, NoiseThatWasCalibratedForFewerRoundsIsNotStretched) {
  write_private("private.toml", "rounds = 2", "ldp-fedavg");
  run("private.toml", "spent", "");
  const json before = summary("spent");
  expect_user_error("run spent --resume --set rounds=3", "the noise of 'model' was calibrated for 2");
  EXPECT_EQ(summary("spent"), before) << "a refusal leaves the run as it was";
  EXPECT_EQ(sotto("ledger verify spent").exit_code, 0);
  EXPECT_EQ(sotto("run spent --resume --quiet").exit_code, 0);
}

TEST_F(Extension, UnspentBudgetIsForMoreRounds) {
  for (const char* method : {"ldp-fedavg", "dp-fedavg"}) {
    const std::string config = fmt::format("{}.toml", method), whole = fmt::format("{}-whole", method),
                      part = fmt::format("{}-part", method);
    write_private(config, "most_rounds = 4", method);
    const std::string unit = std::string(method) == "dp-fedavg"
                                 ? "--set privacy.unit=client --set privacy.observer=clients --set "
                                   "privacy.adjacency=add-remove --set privacy.delta=0.1"
                                 : "";
    run(config, whole, "--set rounds=4 " + unit);
    run(config, part, "--set rounds=1 " + unit);
    const double spent = summary(part)["privacy"]["proven_epsilon"]["max"];
    EXPECT_LT(spent, 1.5);
    expect_user_error(fmt::format("run {} --resume --set rounds=5", part), "most_rounds");
    extend(part, 4);
    EXPECT_EQ(result_of(part), result_of(whole));
    EXPECT_EQ(model_of(part), model_of(whole));
    EXPECT_GT(summary(part)["privacy"]["proven_epsilon"]["max"], spent);
    EXPECT_LE(summary(part)["privacy"]["proven_epsilon"]["max"], 2);
    EXPECT_EQ(sotto("ledger verify " + part).exit_code, 0);
  }
  expect_user_error("run config.toml --set most_rounds=20", "most_rounds is for runs with [privacy]");
}

TEST_F(Extension, OnlyFinishedRunsGetMoreRoundsAndNothingElse) {
  run("config.toml", "run", "--set rounds=2");
  expect_user_error("run run --resume --set rounds=1", "not shortened");
  expect_user_error("run run --resume --set rounds=3 --set federation.lr=0.5", "different config");
  fs::remove(folder_ / "run" / "summary.json");
  expect_user_error("run run --resume --set rounds=3", "first: sotto run run --resume");
  run("config.toml", "gone", "--set rounds=2 --set method.name=local-only --set record.keep_states=none");
  expect_user_error("run gone --resume --set rounds=3", "states are gone");
}

// The config is the first thing that changes: whoever is killed right after it can go on without saying anything again.
TEST_F(Extension, SurvivesACrashAtItsFirstStep) {
  run("config.toml", "whole", "--set rounds=3");
  run("config.toml", "part", "--set rounds=2");
  std::string text = read_file(folder_ / "part" / "config.toml");
  text.replace(text.find("rounds = 2"), 10, "rounds = 3");
  write_file_atomically(folder_ / "part" / "config.toml", text);
  EXPECT_EQ(sotto("predict part --test 1").exit_code, 0) << "the model is still there";
  const Result result = sotto("run part --resume --quiet");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result_of("part"), result_of("whole"));
}

TEST_F(Extension, WhatWasFoundOutBeforeIsKeptApart) {
  run("config.toml", "run", "--set rounds=2");
  write_file_atomically(folder_ / "run" / "audit.json", std::string_view(R"({"entries": []})"));
  fs::create_directories(folder_ / "run" / "attacks");
  extend("run", 3);
  EXPECT_FALSE(fs::exists(folder_ / "run" / "audit.json"));
  EXPECT_TRUE(fs::exists(folder_ / "run" / "until_round_000002" / "audit.json"));
  EXPECT_TRUE(fs::exists(folder_ / "run" / "until_round_000002" / "attacks"));
}

}  // namespace
}  // namespace sotto
