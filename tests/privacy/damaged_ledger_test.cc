// Ledgers whose files were damaged: they are refused, in one line, and never read as if they said something else.
#include "../support/expect_user_error.h"
#include "../support/temp_folder.h"
#include "base/files.h"
#include "privacy/home.h"
#include "privacy/ledger.h"

#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/resource.h>

#include <csignal>
#include <string>

namespace sotto::privacy {
namespace {

const HomeRecords kRecords = {.name = "people", .content = "abc", .dealt = "def", .clients = 1};

class DamagedLedger : public ::testing::Test {
 protected:
  DamagedLedger() {
    write_file_atomically(folder_ / "budget.toml", "epsilon = 4.0\ndelta = 1e-5\nadjacency = \"replace\"\n");
    Home home(folder_.path(), kRecords);
    for (int64_t round = 1; round <= 2; ++round) {
      home.spend({.round = round,
                  .client = 0,
                  .observer = "server",
                  .what = "model",
                  .mechanism = kGaussianMechanism,
                  .noise_scale = 10,
                  .sensitivity = 1,
                  .generator = "secure",
                  .run = "a run"});
    }
    home.commit();
  }

  void change(const std::string& sql) const {
    sqlite3* database = nullptr;
    ASSERT_EQ(sqlite3_open(file().c_str(), &database), SQLITE_OK);
    EXPECT_EQ(sqlite3_exec(database, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK) << sqlite3_errmsg(database);
    sqlite3_close(database);
  }
  fs::path file() const { return folder_ / "ledger.sqlite"; }

  test::TempFolder folder_;
};

TEST_F(DamagedLedger, AHomeIsRefusedWhoseRowsSayLessThanWasSpent) {
  EXPECT_NO_THROW(Home(folder_.path(), kRecords));
  change("UPDATE releases SET noise = 1000 WHERE round = 1");
  EXPECT_USER_ERROR(Home(folder_.path(), kRecords), "row 1 is not what was written");
  EXPECT_USER_ERROR(Home(folder_.path()), "row 1 is not what was written");
}

TEST_F(DamagedLedger, WhatIsNoTextIsNoLink) {
  change("UPDATE releases SET what = CAST(x'ff41' AS TEXT) WHERE round = 2");
  EXPECT_USER_ERROR(Ledger(file(), Ledger::Mode::kRead).verify_chain(), "row 2 is not what was written");
}

TEST_F(DamagedLedger, TermsThatCannotBeRead) {
  for (const char* terms : {"{}", "[]", "{\"epsilon\": 4", "{\"epsilon\": \"four\"}"}) {
    change(fmt::format("UPDATE meta SET value = '{}' WHERE key = 'terms'", terms));
    EXPECT_USER_ERROR(Ledger(file(), Ledger::Mode::kRead), "its terms cannot be read");
  }
}

TEST_F(DamagedLedger, NotesThatCannotBeRead) {
  change("INSERT OR REPLACE INTO meta VALUES ('home', '{\"id\": 3}')");
  const Ledger ledger(file(), Ledger::Mode::kRead);
  EXPECT_USER_ERROR(ledger.run_in_home(), "which home it is charged to cannot be read");
  EXPECT_USER_ERROR(ledger.check_home(nullptr), "which home it is charged to cannot be read");
  change("UPDATE meta SET value = '{\"id\": \"a\"}' WHERE key = 'records'");
  EXPECT_USER_ERROR(Home(folder_.path()), "is not the ledger of a home");
}

// No file of this process may grow, as on a full disk.
class NoRoom {
 public:
  NoRoom() : signal_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit none = {0, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &none);
  }
  ~NoRoom() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, signal_);
  }
  NoRoom(const NoRoom&) = delete;
  NoRoom& operator=(const NoRoom&) = delete;

 private:
  rlimit before_{};
  void (*signal_)(int);
};

TEST(FullDisk, LosesTheRowsThatItCouldNotTakeAndNothingElse) {
  const test::TempFolder folder;
  const fs::path file = folder / "ledger.sqlite";
  const Event event = {
      .round = 1, .client = 0, .observer = "server", .what = "model", .noise_scale = 1, .sensitivity = 1};
  Event next = event;
  next.round = 2;
  for (const bool makes_up_for_it : {false, true}) {
    Ledger ledger(file);
    ledger.spend(event);
    ledger.commit();
    ledger.spend(next);
    {
      const NoRoom full;
      EXPECT_THROW(ledger.commit(), UserError);
    }
    // There is room again, and the rows are gone: nothing may be written on their strength, now or at the end.
    EXPECT_USER_ERROR(ledger.commit(), "start again");
    EXPECT_USER_ERROR(ledger.set_note("a", "b"), "start again");
    if (!makes_up_for_it) continue;
    ledger.forget_uncommitted();
    EXPECT_EQ(ledger.rows(), 1);
    ledger.spend(next);
    ledger.commit();
  }
  const Ledger ledger(file, Ledger::Mode::kRead);
  EXPECT_EQ(ledger.rows(), 2);
  ledger.verify_chain();
}

}  // namespace
}  // namespace sotto::privacy
