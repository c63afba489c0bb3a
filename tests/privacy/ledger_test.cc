#include "privacy/ledger.h"

#include "base/error.h"
#include "base/files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace sotto::privacy {
namespace {

Event event(int64_t round, int64_t client) {
  return {round, client, "server", "model", "in-the-clear", "why"};
}

class LedgerFile : public ::testing::Test {
 protected:
  LedgerFile() { fs::create_directories(folder_); }
  ~LedgerFile() override { fs::remove_all(folder_); }
  const fs::path folder_ = fs::temp_directory_path() / fmt::format("sotto-ledger-{}", ::getpid());
  const fs::path file_ = folder_ / "ledger.sqlite";
};

TEST_F(LedgerFile, KeepsRowsAcrossReopening) {
  {
    Ledger ledger(file_);
    ledger.spend(event(1, 2));
    ledger.commit();
  }
  EXPECT_THAT(Ledger(file_).events(), ::testing::ElementsAre(event(1, 2)));
}

TEST_F(LedgerFile, CommittedRowsSurviveAKilledProcess) {
  const pid_t child = ::fork();
  if (child == 0) {
    Ledger ledger(file_);
    ledger.spend(event(1, 1));
    ledger.commit();
    ledger.spend(event(2, 1));
    ::_exit(0);
  }
  ::waitpid(child, nullptr, 0);
  EXPECT_THAT(Ledger(file_).events(), ::testing::ElementsAre(event(1, 1)));
}

TEST_F(LedgerFile, TheSameReleaseAgainSpendsNothing) {
  Ledger ledger(file_);
  const Receipt first = ledger.spend(event(1, 2));
  const Receipt other = ledger.spend(event(1, 3));
  const Receipt again = ledger.spend(event(1, 2));
  EXPECT_EQ(first.row(), again.row());
  EXPECT_NE(first.row(), other.row());
  EXPECT_EQ(ledger.events().size(), 2U);
}

TEST_F(LedgerFile, AnotherReleaseInTheSamePlaceIsRefused) {
  Ledger ledger(file_);
  ledger.spend(event(1, 2));
  Event changed = event(1, 2);
  changed.mechanism = "gaussian";
  EXPECT_THROW(ledger.spend(changed), UserError);
}

TEST_F(LedgerFile, ForeignAndTruncatedFilesAreUserErrors) {
  write_file_atomically(file_, "this is not a database, however long the text may be");
  EXPECT_THROW(Ledger ledger(file_), UserError);
  EXPECT_THROW(Ledger ledger(folder_ / "missing" / "ledger.sqlite"), UserError);
}

TEST_F(LedgerFile, ASecondWriterIsRefused) {
  Ledger first(file_);
  first.spend(event(1, 1));
  first.commit();
  EXPECT_THROW(Ledger second(file_), UserError);
}

}  // namespace
}  // namespace sotto::privacy
