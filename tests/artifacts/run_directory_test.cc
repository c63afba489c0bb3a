#include "artifacts/run_directory.h"

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
  RunFolder() { fs::remove_all(folder_.parent_path()); }
  ~RunFolder() override { fs::remove_all(folder_.parent_path()); }
  const fs::path folder_ = fs::temp_directory_path() / fmt::format("sotto-run-{}", ::getpid()) / "run";
};

TEST_F(RunFolder, HoldsWhatTheRunDid) {
  const auto setup = small_setup(kConfig);
  const auto summary = run::execute(setup, {.folder = folder_, .resume = false, .threads = 2});
  ASSERT_TRUE(summary.has_value());
  const RunReader reader(folder_);
  EXPECT_EQ(reader.rounds().size(), 3U);
  EXPECT_EQ(reader.summary(), summary);
  EXPECT_EQ(reader.last_checkpoint(setup.spec().hash())->round, 3);
  EXPECT_EQ((*summary)["accuracy"]["per_client"].size(), 4U);
  EXPECT_EQ(privacy::Ledger(folder_ / "ledger.sqlite").events().size(), 12U);
}

TEST_F(RunFolder, ALineCutOffByAKillIsNotThere) {
  const auto setup = small_setup(kConfig);
  run::execute(setup, {.folder = folder_, .resume = false, .threads = 1});
  std::ofstream(folder_ / "metrics.jsonl", std::ios::app) << "{\"round\": 4, \"sec";
  EXPECT_EQ(RunReader(folder_).rounds().size(), 3U);
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
