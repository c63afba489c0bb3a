#include "privacy/home.h"

#include "../support/expect_user_error.h"
#include "../support/temp_folder.h"
#include "base/files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

namespace sotto::privacy {
namespace {

constexpr const char* kBudget = "epsilon = 1.0\ndelta = 1e-5\nadjacency = \"replace\"\n";
const HomeRecords kRecords = {.name = "people", .content = "abc", .dealt = "def", .clients = 3};

Event gaussian(int64_t round, int64_t client, double multiplier = 10.0) {
  return {.round = round,
          .client = client,
          .observer = "server",
          .what = "model",
          .mechanism = kGaussianMechanism,
          .noise_scale = multiplier,
          .sensitivity = 1.0,
          .generator = "replay"};
}

class HomeFolder : public ::testing::Test {
 protected:
  HomeFolder() { promise(kBudget); }

  void promise(const std::string& budget) const {
    fs::create_directories(home_);
    write_file_atomically(home_ / "budget.toml", budget);
  }
  fs::path run(const std::string& name) const { return temporary_ / (name + ".sqlite"); }
  void change(const std::string& sql) const {
    sqlite3* database = nullptr;
    ASSERT_EQ(sqlite3_open((home_ / "ledger.sqlite").c_str(), &database), SQLITE_OK);
    EXPECT_EQ(sqlite3_exec(database, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK) << sqlite3_errmsg(database);
    sqlite3_close(database);
  }
  void copy(const std::string& from, const std::string& to) const {
    fs::copy_file(home_ / from, home_ / to, fs::copy_options::overwrite_existing);
  }
  // Rounds that client 0 can pay for in a run of its own, charged to the home.
  int64_t rounds_paid(const std::string& name, int64_t most = 1000) const {
    Home home(home_, kRecords);
    Ledger ledger(run(name));
    ledger.charge_to(home, name);
    int64_t rounds = 0;
    try {
      for (; rounds < most; ++rounds) ledger.spend(gaussian(rounds, 0));
    } catch (const BudgetSpent&) {
    }
    EXPECT_EQ(ledger.rows(), rounds) << "a refused release leaves no row";
    ledger.commit();
    return rounds;
  }

  const test::TempFolder temporary_;
  const fs::path home_ = temporary_ / "home";
};

TEST_F(HomeFolder, RunsSpendOneBudget) {
  Ledger alone;
  PrivacyTerms terms;
  terms.epsilon = 1.0;
  terms.delta = 1e-5;
  alone.agree(terms, HeldTo::kProven);
  int64_t affordable = 0;
  EXPECT_THROW(for (; affordable < 1000; ++affordable) alone.spend(gaussian(affordable, 0)), BudgetSpent);
  ASSERT_GT(affordable, 4);

  EXPECT_EQ(rounds_paid("first", 3), 3);
  EXPECT_EQ(rounds_paid("second"), affordable - 3);
  EXPECT_EQ(rounds_paid("third"), 0);
  const Home home(home_);
  EXPECT_EQ(home.ledger().rows(), affordable);
  home.ledger().verify_chain();
}

settings::Section words(const nlohmann::json& value) {
  return {value, "", std::make_shared<settings::Source>(settings::Source{.file = "the promise", .line = {}})};
}

TEST_F(HomeFolder, APromiseIsWrittenOnceAndOnlyIfItIsOne) {
  const fs::path fresh = temporary_ / "fresh";
  EXPECT_USER_ERROR(Home::promise(fresh, words({{"epsilon", 1}, {"delta", 1e-5}})), "adjacency");
  EXPECT_USER_ERROR(
      Home::promise(fresh, words({{"epsilon", 1}, {"delta", 1e-5}, {"adjacency", "replace"}, {"epsilom", 2}})),
      "epsilon");
  EXPECT_FALSE(fs::exists(fresh));
  Home::promise(fresh, words({{"epsilon", 1}, {"delta", 1e-5}, {"adjacency", "replace"}, {"budgets", {0.5, 0.75}}}));
  EXPECT_EQ(Home(fresh, kRecords).terms().budgets, (std::vector<double>{0.5, 0.75}));
  Home::promise(fresh, words({{"epsilon", 9}}));
  EXPECT_EQ(Home(fresh, kRecords).terms().epsilon, 1.0);
  const fs::path policed = temporary_ / "policed";
  fs::create_directories(policed);
  write_file_atomically(policed / "policy.toml", std::string("[budget]\n") + kBudget);
  Home::promise(policed, words({{"epsilon", 9}, {"delta", 1e-5}, {"adjacency", "replace"}}));
  EXPECT_FALSE(fs::exists(policed / "budget.toml"));
}

TEST_F(HomeFolder, TheRefusalNamesTheHome) {
  rounds_paid("first");
  Home home(home_, kRecords);
  Ledger ledger(run("second"));
  ledger.charge_to(home, "second");
  try {
    ledger.spend(gaussian(1, 0));
    FAIL() << "more was spent than the home allows";
  } catch (const BudgetSpent& refusal) {
    EXPECT_THAT(refusal.what(), ::testing::HasSubstr("at its home " + home.folder().string()));
    EXPECT_THAT(refusal.what(), ::testing::HasSubstr("its budget is ε = 1"));
  }
  EXPECT_NO_THROW(ledger.spend(gaussian(1, 1))) << "other clients have budgets of their own";
}

TEST_F(HomeFolder, PlannedReleasesAreCountedWithThoseOfOtherRuns) {
  rounds_paid("first", 3);
  Home home(home_, kRecords);
  Ledger ledger(run("second"));
  ledger.charge_to(home, "second");
  int64_t rounds = 0;
  EXPECT_THROW(for (; rounds < 1000; ++rounds) ledger.spend(gaussian(rounds, 0), 1000), BudgetSpent);
  Tally all;
  all.add(gaussian(0, 0), 3 + rounds);
  EXPECT_LE(all.proven(1e-5), 1.0);
  all.add(gaussian(0, 0));
  EXPECT_GT(all.proven(1e-5), 1.0);
}

TEST_F(HomeFolder, TheSameReleaseOfTheSameRunIsPaidOnce) {
  rounds_paid("first", 2);
  EXPECT_EQ(rounds_paid("first", 2), 2);
  EXPECT_EQ(Home(home_).ledger().rows(), 2) << "the run was resumed";
  rounds_paid("other", 2);
  EXPECT_EQ(Home(home_).ledger().rows(), 4) << "another run's release is another release";
}

// As if the process had died between the two commits.
TEST_F(HomeFolder, ARowThatOnlyTheHomeHasIsPaidOnce) {
  std::string name;
  {
    Home home(home_, kRecords);
    Ledger ledger(run("first"));
    ledger.charge_to(home, "first");
    name = ledger.run_in_home();
    Event event = gaussian(0, 0);
    event.run = name;
    home.spend(event);
    home.commit();
  }
  EXPECT_EQ(rounds_paid("first", 1), 1);
  EXPECT_EQ(Home(home_).ledger().rows_of(name), 1);
}

TEST_F(HomeFolder, SecureNoiseIsPaidAgain) {
  Home home(home_, kRecords);
  Ledger ledger(run("first"));
  ledger.charge_to(home, "first");
  Event secure = gaussian(1, 0);
  secure.generator = "secure";
  ledger.spend(secure);
  ledger.spend(secure);
  EXPECT_EQ(home.ledger().rows(), 2);
}

TEST_F(HomeFolder, TheHomeIsDurableFirst) {
  Home home(home_, kRecords);
  Ledger ledger(run("first"));
  ledger.charge_to(home, "first");
  ledger.spend(gaussian(1, 0));
  EXPECT_EQ(home.ledger().durable_end().rows, 0);
  ledger.commit();
  EXPECT_EQ(home.ledger().durable_end().rows, 1);
  EXPECT_THAT(read_file(home_ / "ledger.mark"), ::testing::HasSubstr(home.ledger().head()));
}

TEST_F(HomeFolder, WhatCannotBeProvenIsRefused) {
  Home home(home_, kRecords);
  Ledger ledger(run("first"));
  ledger.charge_to(home, "first");
  Event clear = gaussian(1, 0);
  clear.mechanism = kClearMechanism;
  clear.why_unproven = "no noise";
  EXPECT_THROW(ledger.spend(clear), BudgetSpent);
  EXPECT_EQ(ledger.rows(), 0);
  Event of_client = gaussian(1, 0);
  of_client.neighbours.unit = Unit::kClient;
  EXPECT_USER_ERROR(ledger.spend(of_client), "replace of a record");
}

TEST_F(HomeFolder, ClientsMayHaveBudgetsOfTheirOwn) {
  promise(std::string(kBudget) + "budgets = [0.1, 10]\n");
  Home home(home_, kRecords);
  Ledger ledger(run("first"));
  ledger.charge_to(home, "first");
  EXPECT_THROW(ledger.spend(gaussian(1, 0, 4.0)), BudgetSpent);
  EXPECT_NO_THROW(ledger.spend(gaussian(1, 1, 4.0)));
}

TEST_F(HomeFolder, OtherRecordsAreRefused) {
  rounds_paid("first", 1);
  HomeRecords others = kRecords;
  others.name = "strangers";
  others.content = "xyz";
  EXPECT_USER_ERROR(Home(home_, others), "is that of people");
  others = kRecords;
  others.dealt = "xyz";
  EXPECT_USER_ERROR(Home(home_, others), "deals them otherwise");
}

TEST_F(HomeFolder, APromiseIsKept) {
  rounds_paid("first", 1);
  promise("epsilon = 5.0\ndelta = 1e-5\nadjacency = \"replace\"\n");
  EXPECT_USER_ERROR(Home(home_, kRecords), "says something else than the home has promised");
  EXPECT_USER_ERROR(Home{home_}, "says something else than the home has promised");
  promise("epsilon = 1.0\ndelta = 1e-5\nadjacency = \"replace\"\nnoise = \"secure\"\n");
  EXPECT_USER_ERROR(Home{home_}, "noise");
}

TEST_F(HomeFolder, AFolderWithoutABudgetIsNoHome) {
  EXPECT_USER_ERROR(Home(temporary_ / "none", kRecords), "budget.toml");
  EXPECT_FALSE(fs::exists(temporary_ / "none"));
  EXPECT_USER_ERROR(Home{home_}, "no run was charged");
}

TEST_F(HomeFolder, ASecondWriterIsRefusedAndAReaderIsNot) {
  const Home first(home_, kRecords);
  EXPECT_USER_ERROR(Home(home_, kRecords), "in use");
  EXPECT_EQ(Home(home_).records(), kRecords);
}

TEST_F(HomeFolder, ALostOrOlderLedgerIsRefused) {
  rounds_paid("first", 1);
  copy("ledger.sqlite", "aside");
  rounds_paid("first", 2);
  copy("ledger.sqlite", "newest");
  fs::remove(home_ / "ledger.sqlite");
  EXPECT_USER_ERROR(Home(home_, kRecords), "has lost its ledger");
  EXPECT_USER_ERROR(Home{home_}, "has lost its ledger");
  EXPECT_FALSE(fs::exists(home_ / "ledger.sqlite"));
  copy("aside", "ledger.sqlite");
  EXPECT_USER_ERROR(Home(home_, kRecords), "is older than its home");
  copy("newest", "ledger.sqlite");
  EXPECT_EQ(Home(home_).ledger().rows(), 2);
  fs::remove(home_ / "ledger.mark");
  EXPECT_USER_ERROR(Home(home_, kRecords), "has lost ledger.mark");
}

// Ledger and mark put back together fit each other, but not the run.
TEST_F(HomeFolder, AnOlderCopyOfAllIsFoundByItsRuns) {
  rounds_paid("first", 1);
  copy("ledger.sqlite", "aside");
  copy("ledger.mark", "aside.mark");
  rounds_paid("first", 2);
  copy("aside", "ledger.sqlite");
  copy("aside.mark", "ledger.mark");
  Home home(home_, kRecords);
  Ledger ledger(run("first"));
  EXPECT_USER_ERROR(ledger.charge_to(home, "first"), "knows of 1 of the 2 releases");
}

TEST_F(HomeFolder, TamperingIsFound) {
  rounds_paid("first", 2);
  change("UPDATE releases SET run = 'other' WHERE round = 1");
  EXPECT_USER_ERROR(Home(home_).ledger().verify_chain(), "row 2 is not what was written");
  change("DELETE FROM releases WHERE round = 1");
  EXPECT_USER_ERROR(Home{home_}, "tampered");
}

TEST_F(HomeFolder, ARunKeepsItsHome) {
  {
    Ledger ledger(run("free"));
    ledger.spend(gaussian(1, 0));
    ledger.commit();
    Home home(home_, kRecords);
    EXPECT_USER_ERROR(ledger.charge_to(home, "free"), "no home has paid for");
  }
  rounds_paid("first", 1);
  Ledger ledger(run("first"));
  EXPECT_USER_ERROR(ledger.check_home(nullptr), "add --home " + home_.string());
  fs::create_directories(temporary_ / "second");
  write_file_atomically(temporary_ / "second" / "budget.toml", std::string_view(kBudget));
  Home second(temporary_ / "second", kRecords);
  EXPECT_USER_ERROR(ledger.charge_to(second, "first"), "is charged to the home");
}

TEST_F(HomeFolder, ADamagedMarkIsNamed) {
  rounds_paid("first", 1);
  write_file_atomically(home_ / "ledger.mark", "{\"rows\": \"one\"}\n");
  EXPECT_USER_ERROR(Home{home_}, "is damaged");
}

}  // namespace
}  // namespace sotto::privacy
