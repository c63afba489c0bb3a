#include "artifacts/find_runs.h"

#include "../support/expect_user_error.h"
#include "../support/temp_folder.h"
#include "artifacts/ledger_snapshot.h"
#include "base/files.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include <set>

namespace sotto::artifacts {
namespace {

using ::testing::ElementsAre;

fs::path make_run(const fs::path& folder) {
  fs::create_directories(folder / "checkpoints");
  write_file_atomically(folder / "config.toml", "rounds = 3\n");
  return folder;
}

std::set<std::string> names_in(const fs::path& folder) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.insert(entry.path().filename().string());
  return names;
}

void write_row(const fs::path& file) {
  privacy::Ledger ledger(file);
  ledger.spend({.round = 1, .observer = "server", .what = "model", .mechanism = privacy::kClearMechanism});
  ledger.commit();
}

TEST(FindRuns, FindsThemAtAnyDepthAndNothingElse) {
  const test::TempFolder folder;
  make_run(folder / "b");
  make_run(folder.path() / "sweep" / "a");
  make_run(folder.path() / "b" / "inside-a-run");
  fs::create_directories(folder / "config-alone");
  write_file_atomically(folder.path() / "config-alone" / "config.toml", "");
  EXPECT_THAT(find_runs(folder.path()), ElementsAre(fs::path("b"), fs::path("sweep/a")));
  EXPECT_THAT(find_runs(folder / "b"), ElementsAre(fs::path(".")));
  EXPECT_USER_ERROR(find_runs(folder / "nowhere"), "there is no folder");
}

TEST(FindRuns, DoesNotFollowLinks) {
  const test::TempFolder outside, folder;
  make_run(outside / "secret");
  make_run(folder / "own");
  fs::create_directory_symlink(outside / "secret", folder / "link");
  fs::create_directory_symlink(outside.path(), folder / "link-to-parent");
  fs::create_directory_symlink(folder.path(), folder / "circle");
  fs::create_directories(folder.path() / "half" / "checkpoints");
  fs::create_symlink(outside.path() / "secret" / "config.toml", folder.path() / "half" / "config.toml");
  EXPECT_THAT(find_runs(folder.path()), ElementsAre(fs::path("own")));
}

TEST(StateOf, FollowsTheLockAndTheSummary) {
  const test::TempFolder folder;
  const fs::path run = make_run(folder / "run");
  EXPECT_EQ(state_of(run), RunState::kStopped);
  const int lock = ::open((run / "lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  EXPECT_EQ(state_of(run), RunState::kStopped) << "a lock file that nobody holds";
  ASSERT_EQ(::flock(lock, LOCK_EX), 0);
  EXPECT_EQ(state_of(run), RunState::kRunning);
  ::close(lock);
  EXPECT_EQ(state_of(run), RunState::kStopped);
  write_file_atomically(run / "summary.json", "{}");
  EXPECT_EQ(state_of(run), RunState::kFinished);
}

TEST(LedgerSnapshot, ReadsWithoutLeavingATrace) {
  const test::TempFolder folder;
  write_row(folder / "ledger.sqlite");
  const auto before = names_in(folder.path());
  const LedgerSnapshot snapshot(folder.path());
  EXPECT_EQ(snapshot->rows(), 1);
  EXPECT_EQ(names_in(folder.path()), before);
}

TEST(LedgerSnapshot, SeesWhatAnOpenLedgerHasCommitted) {
  const test::TempFolder folder;
  privacy::Ledger writer(folder / "ledger.sqlite");
  for (int64_t round = 1; round <= 3; ++round) {
    writer.spend({.round = round, .observer = "server", .what = "model", .mechanism = privacy::kClearMechanism});
    writer.commit();
    EXPECT_EQ(LedgerSnapshot(folder.path())->rows(), round);
  }
}

TEST(LedgerSnapshot, RefusesAMissingAndADamagedLedger) {
  const test::TempFolder folder;
  EXPECT_USER_ERROR(LedgerSnapshot(folder.path()), "has no ledger");
  write_row(folder / "ledger.sqlite");
  const std::string whole = read_file(folder / "ledger.sqlite");
  write_file_atomically(folder / "ledger.sqlite", whole.substr(0, whole.size() / 2));
  EXPECT_THROW(LedgerSnapshot(folder.path()), UserError);
}

}  // namespace
}  // namespace sotto::artifacts
