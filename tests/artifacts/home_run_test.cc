// Runs that are charged to a home: its budget holds over all of them.
#include "../support/expect_user_error.h"
#include "../support/temp_folder.h"
#include "artifacts/metrics.h"
#include "base/files.h"
#include "privacy/spending.h"
#include "run/execute.h"
#include "small_setup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sotto::artifacts {
namespace {

using federation::privacy_terms;
using federation::small_setup;

std::string config(const std::string& method, const std::string& lr = "0.1") {
  return "rounds = 3\n[data]\nclients = 4\n[federation]\nbatch = 16\nlr = " + lr + "\n[method]\nname = \"" + method +
         "\"\n" + (method == "fedavg" ? "" : privacy_terms(method));
}

class HomeOfRuns : public ::testing::Test {
 protected:
  HomeOfRuns() { promise(8.0); }

  void promise(double epsilon, const std::string& more = "") const {
    fs::create_directories(home_);
    write_file_atomically(home_ / "budget.toml",
                          fmt::format("epsilon = {}\ndelta = 1e-3\nadjacency = \"zero-out\"\n{}", epsilon, more));
  }
  std::unique_ptr<privacy::Home> open_home() const {
    return std::make_unique<privacy::Home>(
        home_, privacy::HomeRecords{.name = "blobs", .content = "1", .dealt = "2", .clients = 4});
  }
  // All rounds, or so many of them, as if the process had been killed.
  void run(const std::string& name, const std::string& toml, int rounds = 3) const {
    const auto setup = small_setup(toml);
    const auto home = open_home();
    run::Run run(setup, {.folder = temporary_ / name, .resume = true, .threads = 2, .home = home.get()});
    for (int i = 0; i < rounds; ++i) run.next_round();
    if (run.finished()) run.finish();
  }
  int64_t rows(const std::string& name) const { return RunReader(temporary_ / name).ledger()->rows(); }

  const test::TempFolder temporary_;
  const fs::path home_ = temporary_ / "home";
};

TEST_F(HomeOfRuns, ClientsAbstainOnceTheHomeIsSpent) {
  run("first", config("ldp-fedavg"));
  const int64_t spent = rows("first");
  EXPECT_EQ(spent, 12);
  EXPECT_EQ(privacy::Home(home_).ledger().rows(), spent);
  run("second", config("ldp-fedavg", "0.2"));
  EXPECT_EQ(rows("second"), 0);
  EXPECT_EQ(privacy::Home(home_).ledger().rows(), spent);
  for (const nlohmann::json& round : RunReader(temporary_ / "second").rounds()) {
    EXPECT_EQ(round["abstained"].size(), 4U);
    EXPECT_EQ(round["samples"], 0) << "nothing was computed";
  }
  const auto home = open_home();
  for (const auto& client : privacy::guarantees(home->ledger(), "server", 4, 1e-3)) EXPECT_LE(client.proven, 8.0);
}

TEST_F(HomeOfRuns, ALargerHomeServesTwoRuns) {
  promise(20.0);
  run("first", config("ldp-fedavg"));
  run("second", config("ldp-fedavg", "0.2"));
  EXPECT_EQ(rows("second"), 12);
  EXPECT_EQ(privacy::Home(home_).ledger().rows(), 24);
}

TEST_F(HomeOfRuns, AResumedRunPaysNothingTwice) {
  run("first", config("ldp-fedavg"), 2);
  const int64_t before = privacy::Home(home_).ledger().rows();
  EXPECT_EQ(before, 8);
  fs::remove_all(temporary_ / "first" / "checkpoints");
  fs::create_directories(temporary_ / "first" / "checkpoints");
  fs::remove(temporary_ / "first" / "metrics.jsonl");
  run("first", config("ldp-fedavg"));
  EXPECT_EQ(privacy::Home(home_).ledger().rows(), 12);
  EXPECT_EQ(rows("first"), 12);
  EXPECT_TRUE(RunReader(temporary_ / "first").summary().has_value());
}

TEST_F(HomeOfRuns, AResultDoesNotDependOnIt) {
  run("charged", config("ldp-fedavg"));
  const auto setup = small_setup(config("ldp-fedavg"));
  const auto summary = run::execute(setup, {.folder = temporary_ / "alone", .resume = false, .threads = 1});
  ASSERT_TRUE(summary.has_value());
  const auto charged = RunReader(temporary_ / "charged").summary();
  EXPECT_EQ(to_json(summary->evaluation), to_json(charged->evaluation));
  EXPECT_EQ(summary->config_hash, charged->config_hash);
}

TEST_F(HomeOfRuns, ARunKeepsItsHome) {
  run("first", config("ldp-fedavg"), 1);
  const auto setup = small_setup(config("ldp-fedavg"));
  EXPECT_USER_ERROR(run::execute(setup, {.folder = temporary_ / "first", .resume = true, .threads = 1}),
                    "add --home " + home_.string());
  run::Run(setup, {.folder = temporary_ / "free", .resume = false, .threads = 1}).next_round();
  EXPECT_USER_ERROR(run("free", config("ldp-fedavg")), "no home has paid for");
}

TEST_F(HomeOfRuns, WhatItDoesNotPromiseIsRefusedBeforeAnythingIsWritten) {
  EXPECT_USER_ERROR(run("clear", config("fedavg")), "nothing can be proven");
  EXPECT_FALSE(fs::exists(temporary_ / "clear"));
  std::string replaced = config("ldp-fedavg");
  replaced.replace(replaced.find("zero-out"), 8, "replace");
  EXPECT_USER_ERROR(run("other", replaced), "promises zero-out of a record");
  EXPECT_FALSE(fs::exists(temporary_ / "other"));
  EXPECT_USER_ERROR(run("central", config("dp-fedavg")), "nothing can be proven");
}

// Clients of a trusted server cannot abstain once they have handed over their updates.
TEST_F(HomeOfRuns, ATrustedServerMustBeAbleToPayForAll) {
  promise(8.0, "unit = \"client\"\nobserver = \"clients\"\n");
  run("first", config("dp-fedavg"));
  const int64_t spent = privacy::Home(home_).ledger().rows();
  EXPECT_GT(spent, 0);
  EXPECT_USER_ERROR(run("second", config("dp-fedavg", "0.2")), "with this one it would be");
  EXPECT_FALSE(fs::exists(temporary_ / "second"));
  EXPECT_EQ(privacy::Home(home_).ledger().rows(), spent);
}

TEST_F(HomeOfRuns, ATrustedServerCanBeResumed) {
  promise(8.0, "unit = \"client\"\nobserver = \"clients\"\n");
  run("first", config("dp-fedavg"), 2);
  EXPECT_NO_THROW(run("first", config("dp-fedavg"), 1));
  EXPECT_TRUE(RunReader(temporary_ / "first").summary().has_value());
}

}  // namespace
}  // namespace sotto::artifacts
