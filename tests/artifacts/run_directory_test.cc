#include "artifacts/run_directory.h"

#include "../support/expect_user_error.h"
#include "artifacts/ledger_snapshot.h"
#include "artifacts/summary.h"
#include "base/error.h"
#include "base/files.h"
#include "io/safetensors.h"
#include "run/execute.h"
#include "small_setup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

namespace sotto::artifacts {
namespace {

using federation::small_setup;

constexpr const char* kConfig = "rounds = 3\n[data]\nclients = 4\n[federation]\nbatch = 16\n";

class RunFolder : public ::testing::Test {
 protected:
  const fs::path folder_ = fs::temp_directory_path() / fmt::format("sotto-run-{}", ::getpid()) / "run";

  RunFolder() { fs::remove_all(folder_.parent_path()); }
  ~RunFolder() override { fs::remove_all(folder_.parent_path()); }

  // So many rounds more, and then nothing: as if the process had been killed.
  void run_rounds(const federation::Setup& setup, int rounds) const {
    run::Run run(setup, {.folder = folder_, .resume = true, .threads = 1});
    for (int i = 0; i < rounds; ++i) run.next_round();
  }
  std::optional<RunSummary> resume(const federation::Setup& setup) const {
    return run::execute(setup, {.folder = folder_, .resume = true, .threads = 1});
  }
  fs::path checkpoint_of(int round) const {
    return folder_ / "checkpoints" / fmt::format("round_{:06}.safetensors", round);
  }

  const fs::path ledger_ = folder_ / "ledger.sqlite";
  const fs::path aside_ = folder_.parent_path() / "aside";
};

TEST_F(RunFolder, HoldsWhatTheRunDid) {
  const auto setup = small_setup(kConfig);
  const auto summary = run::execute(setup, {.folder = folder_, .resume = false, .threads = 2});
  ASSERT_TRUE(summary.has_value());
  const RunReader reader(folder_);
  EXPECT_EQ(reader.rounds().size(), 3U);
  EXPECT_EQ(to_json(*reader.summary()), to_json(*summary));
  EXPECT_EQ(reader.last_checkpoint(setup.spec())->round, 3);
  EXPECT_EQ(summary->evaluation.clients.size(), 4U);
  EXPECT_EQ(privacy::Ledger(folder_ / "ledger.sqlite").events().size(), 12U);
}

TEST_F(RunFolder, ALineCutOffByAKillIsNotThere) {
  const auto setup = small_setup(kConfig);
  run::execute(setup, {.folder = folder_, .resume = false, .threads = 1});
  std::ofstream(folder_ / "metrics.jsonl", std::ios::app) << "{\"round\": 4, \"sec";
  EXPECT_EQ(RunReader(folder_).rounds().size(), 3U);
}

TEST_F(RunFolder, ALineCutOffByACrashIsRunAgain) {
  const auto setup = small_setup(kConfig);
  run_rounds(setup, 2);
  std::ofstream(folder_ / "metrics.jsonl", std::ios::app) << "{\"round\": 3, \"sec";
  EXPECT_TRUE(resume(setup).has_value());
  EXPECT_EQ(RunReader(folder_).rounds().size(), 3U);
}

TEST_F(RunFolder, LinesThatWereCompleteAreNotLeftOut) {
  const auto setup = small_setup(kConfig);
  run_rounds(setup, 2);
  const std::string whole = read_file(folder_ / "metrics.jsonl");
  const std::string second = whole.substr(whole.find('\n') + 1);
  write_file_atomically(folder_ / "metrics.jsonl", "rubbish\n" + second);
  EXPECT_USER_ERROR(RunReader(folder_).rounds(), "line 1, is damaged");
  EXPECT_USER_ERROR(resume(setup), "line 1, is damaged");
  write_file_atomically(folder_ / "metrics.jsonl", second);
  EXPECT_USER_ERROR(resume(setup), "1 of the 2 rounds");
  write_file_atomically(folder_ / "metrics.jsonl", whole);
  EXPECT_TRUE(resume(setup).has_value());
}

TEST_F(RunFolder, AFinishedRunHasAllItsRounds) {
  const auto setup = small_setup(kConfig);
  run::execute(setup, {.folder = folder_, .resume = false, .threads = 1});
  const fs::path metrics = folder_ / "metrics.jsonl";
  const std::string whole = read_file(metrics);
  for (const size_t kept : {size_t{50}, whole.find('\n') + 1, size_t{0}}) {
    write_file_atomically(metrics, whole.substr(0, kept));
    EXPECT_USER_ERROR(RunReader(folder_).rounds(), "of the 3 rounds of the finished run");
  }
  fs::remove(metrics);
  EXPECT_USER_ERROR(RunReader(folder_).rounds(), "0 of the 3 rounds");
  for (const auto& checkpoint : fs::directory_iterator(folder_ / "checkpoints")) fs::remove_all(checkpoint);
  EXPECT_TRUE(resume(setup).has_value()) << "as the error advises";
  EXPECT_EQ(RunReader(folder_).rounds().size(), 3U);
}

TEST_F(RunFolder, HasItsLedgerFromTheFirstMoment) {
  const auto setup = small_setup(kConfig);
  { const RunDirectory directory(folder_, setup.spec(), false); }
  EXPECT_EQ(RunReader(folder_).ledger()->rows(), 0);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_.parent_path()), fs::directory_iterator()), 1);
  fs::remove(ledger_);
  EXPECT_USER_ERROR(resume(setup), "has no ledger");
}

// What it has spent would read as nothing.
TEST_F(RunFolder, ALostLedgerIsRefused) {
  const auto setup = small_setup(kConfig);
  run_rounds(setup, 2);
  fs::rename(ledger_, aside_);
  EXPECT_USER_ERROR(resume(setup), "has no ledger");
  EXPECT_USER_ERROR(RunReader(folder_).ledger(), "has no ledger");
  EXPECT_FALSE(fs::exists(ledger_));
  fs::rename(aside_, ledger_);
  EXPECT_TRUE(resume(setup).has_value());
  EXPECT_TRUE(RunReader(folder_).summary().has_value());
  fs::remove(ledger_);
  EXPECT_USER_ERROR(resume(setup), "has no ledger");
  EXPECT_USER_ERROR(RunReader(folder_).summary(), "has no ledger");
  EXPECT_TRUE(fs::exists(folder_ / "summary.json")) << "what was refused is as it was";
}

TEST_F(RunFolder, AnOlderLedgerIsRefused) {
  const auto setup = small_setup(kConfig);
  run_rounds(setup, 1);
  fs::copy_file(ledger_, aside_);
  run_rounds(setup, 1);
  fs::rename(aside_, ledger_);
  EXPECT_USER_ERROR(resume(setup), "it holds 4 rows");
  EXPECT_USER_ERROR(RunReader(folder_).ledger(), "is older than its run");
  EXPECT_USER_ERROR(LedgerSnapshot{folder_}, "is older than its run");
  fs::remove(checkpoint_of(2));
  EXPECT_TRUE(resume(setup).has_value()) << "nothing but the checkpoint had seen more";
}

TEST_F(RunFolder, AnotherLedgerIsRefused) {
  const auto setup = small_setup(kConfig);
  run_rounds(setup, 2);
  fs::remove(ledger_);
  {
    privacy::Ledger other(ledger_);
    for (int64_t client = 0; client < 20; ++client) {
      other.spend({.round = 1, .client = client, .observer = "server", .what = "another", .mechanism = "none"});
    }
    other.commit();
  }
  EXPECT_USER_ERROR(resume(setup), "is not the ledger of its run");
  EXPECT_USER_ERROR(RunReader(folder_).ledger(), "row 8 is not the one");
  EXPECT_USER_ERROR(LedgerSnapshot{folder_}, "is not the ledger of its run");
}

// The process died after its rows were committed and before the checkpoint was written.
TEST_F(RunFolder, ALedgerThatIsAheadOfTheCheckpointIsContinued) {
  const auto setup = small_setup(kConfig);
  run_rounds(setup, 1);
  fs::copy_file(checkpoint_of(1), aside_);
  run_rounds(setup, 1);
  fs::remove(checkpoint_of(2));
  fs::rename(aside_, checkpoint_of(1));
  ASSERT_TRUE(resume(setup).has_value());
  EXPECT_EQ(RunReader(folder_).ledger()->rows(), 12);
  EXPECT_EQ(RunReader(folder_).rounds().size(), 3U);
}

TEST_F(RunFolder, ADamagedCheckpointIsRefused) {
  const auto setup = small_setup(kConfig);
  run_rounds(setup, 2);
  const std::string whole = read_file(checkpoint_of(2));
  for (const size_t place : {whole.size() - 1, whole.find(setup.spec().hash()), whole.find("ledger_rows\":\"8") + 14}) {
    std::string bytes = whole;
    bytes[place] = bytes[place] == '0' ? '1' : '0';
    write_file_atomically(checkpoint_of(2), bytes);
    EXPECT_USER_ERROR(RunReader(folder_).last_checkpoint(setup.spec()), "does not fit its checksum");
    EXPECT_USER_ERROR(resume(setup), "does not fit its checksum");
  }
  write_file_atomically(checkpoint_of(2), whole);
  EXPECT_TRUE(resume(setup).has_value());
}

TEST_F(RunFolder, RunsOfEarlierVersionsAreReadAndNotResumed) {
  const auto setup = small_setup(kConfig);
  run::execute(setup, {.folder = folder_, .resume = false, .threads = 1});
  io::SafeTensors checkpoint = io::read_safetensors(checkpoint_of(3));
  for (const char* key : {"checksum", "ledger_rows", "ledger_head"}) checkpoint.metadata.erase(key);
  io::write_safetensors(checkpoint_of(3), {.tensors = clone(checkpoint.tensors), .metadata = checkpoint.metadata});
  nlohmann::json summary = to_json(*RunReader(folder_).summary());
  for (const char* key : {"ledger_rows", "ledger_head"}) summary["privacy"].erase(key);
  write_file_atomically(folder_ / "summary.json", summary.dump());
  const RunReader reader(folder_);
  EXPECT_EQ(to_json(*reader.summary()), summary);
  EXPECT_EQ(reader.ledger()->rows(), 12);
  EXPECT_EQ(reader.last_checkpoint(setup.spec())->round, 3);
  EXPECT_USER_ERROR(resume(setup), "an earlier version");
}

TEST_F(RunFolder, AChangedSummaryIsRefused) {
  const auto setup = small_setup(kConfig);
  const auto summary = run::execute(setup, {.folder = folder_, .resume = false, .threads = 1});
  EXPECT_EQ(summary->privacy.ledger, (privacy::LedgerEnd{.rows = 12, .head = RunReader(folder_).ledger()->head()}));
  nlohmann::json changed = summary_document(*summary);
  changed["accuracy"]["mean"] = 1.0;
  write_file_atomically(folder_ / "summary.json", changed.dump(2));
  EXPECT_USER_ERROR(RunReader(folder_).summary(), "does not fit its checksum");
}

TEST_F(RunFolder, ASummaryThatSaysNothingIsRefused) {
  const auto setup = small_setup(kConfig);
  run::execute(setup, {.folder = folder_, .resume = false, .threads = 1});
  write_file_atomically(folder_ / "summary.json", "{}");
  EXPECT_USER_ERROR(RunReader(folder_).summary(), "it has no 'accuracy'; delete it and resume");
}

TEST_F(RunFolder, AnEmptyFolderIsAsGoodAsNone) {
  const auto setup = small_setup(kConfig);
  fs::create_directories(folder_);
  for (const bool resume : {false, true}) {
    EXPECT_TRUE(is_free(folder_));
    run::execute(setup, {.folder = folder_, .resume = resume, .threads = 1});
    EXPECT_EQ(RunReader(folder_).rounds().size(), 3U);
    EXPECT_USER_ERROR(require_new(folder_), "add --resume");
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  write_file_atomically(folder_ / "notes.txt", "mine");
  EXPECT_USER_ERROR(require_new(folder_), "is not a run directory; choose another --out");
}

TEST_F(RunFolder, RefusesAnotherConfigAndANonRun) {
  const auto setup = small_setup(kConfig);
  run::execute(setup, {.folder = folder_, .resume = false, .threads = 1});
  const auto other = federation::changed(setup, [](config::RunSpec& spec) { spec.seed = 2; });
  EXPECT_THROW(run::execute(other, {.folder = folder_, .resume = true, .threads = 1}), UserError);
  EXPECT_THROW(run::execute(setup, {.folder = folder_, .resume = false, .threads = 1}), UserError);
  EXPECT_THROW(RunReader(folder_.parent_path()), UserError);
  EXPECT_EQ(RunReader(folder_).rounds().size(), 3U) << "nothing was lost";
}

TEST_F(RunFolder, ASecondWriterIsRefused) {
  const auto setup = small_setup(kConfig);
  const RunDirectory first(folder_, setup.spec(), false);
  EXPECT_THROW(RunDirectory(folder_, setup.spec(), true), UserError);
}

TEST_F(RunFolder, RecordsUploadsWithTheHash) {
  const auto setup =
      federation::changed(small_setup(kConfig), [](config::RunSpec& spec) { spec.record.uploads = true; });
  run::execute(setup, {.folder = folder_, .resume = false, .threads = 2});
  const io::SafeTensors upload = io::read_safetensors(folder_ / "uploads/round_000002/client_000003.safetensors");
  EXPECT_EQ(upload.metadata.at("config_hash"), setup.spec().hash());
  EXPECT_TRUE(find_tensor(upload.tensors, "records").defined());
}

TEST_F(RunFolder, UnwritablePlacesAreUserErrors) {
  const auto setup = small_setup(kConfig);
  EXPECT_THROW(run::execute(setup, {.folder = "/proc/nowhere/run", .resume = false, .threads = 1}), UserError);
}

}  // namespace
}  // namespace sotto::artifacts
