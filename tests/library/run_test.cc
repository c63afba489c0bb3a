#include "work_folder.h"

#include <sotto/privacy.h>
#include <sotto/run.h>

#include <cmath>
#include <cstring>

namespace sotto {
namespace {

class LibraryRun : public WorkFolder {};

constexpr const char* kPrivate =
    "[method]\nname = \"ldp-fedavg\"\n[privacy]\nepsilon = 4\ndelta = 1e-5\nadjacency = \"zero-out\"\n";

TEST_F(LibraryRun, GivesRoundsAndTheSummaryThatIsOnDisk) {
  sotto::Run run({.config = config(kPrivate), .folder = at("run")});
  int64_t rounds = 0;
  while (const auto round = run.next_round()) {
    EXPECT_EQ(round->round, ++rounds);
    EXPECT_EQ(round->uploads, 3);
    ASSERT_TRUE(round->evaluation);
    EXPECT_EQ(round->evaluation->clients.size(), 3u);
  }
  EXPECT_EQ(rounds, 4);
  EXPECT_FALSE(read_summary(at("run")));
  const RunSummary summary = run.finish();
  EXPECT_EQ(summary.method, "ldp-fedavg");
  EXPECT_EQ(summary.rounds, 4);
  EXPECT_EQ(summary.delta, 1e-5);
  ASSERT_TRUE(summary.privacy.proven);
  EXPECT_NEAR(summary.privacy.proven->max, 4, 0.01);
  EXPECT_LE(summary.privacy.proven->max, 4);
  EXPECT_FALSE(summary.proven_basis);
  EXPECT_GE(summary.evaluation.mean_accuracy, 0);
  const auto read = read_summary(at("run"));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->evaluation.mean_accuracy, summary.evaluation.mean_accuracy);
  EXPECT_EQ(read->config_hash, summary.config_hash);
  EXPECT_NEAR(Ledger(at("run")).spent(0, 1e-5).proven, summary.privacy.proven->max, 1e-12);
  EXPECT_FALSE(run.broadcast().empty());
}

TEST_F(LibraryRun, StopsWhereItCanBeResumed) {
  {
    sotto::Run whole({.config = config(), .folder = at("whole")});
    while (whole.next_round()) {
    }
    whole.finish();
  }
  {
    sotto::Run run({.config = config(), .folder = at("run")});
    ASSERT_TRUE(run.next_round());
    stop_runs();
    ASSERT_TRUE(run.next_round());
    EXPECT_FALSE(run.next_round());
    EXPECT_FALSE(run.finished());
    EXPECT_THROW(run.finish(), Error);
    stop_runs(false);
  }
  EXPECT_THROW(sotto::Run({.config = config(), .folder = at("run")}), Error);  // it is taken
  sotto::Run run({.config = config(), .folder = at("run"), .resume = true, .threads = 2});
  ASSERT_EQ(run.next_round()->round, 3);
  while (run.next_round()) {
  }
  EXPECT_EQ(run.finish().evaluation.mean_accuracy, read_summary(at("whole"))->evaluation.mean_accuracy);
}

TEST_F(LibraryRun, SaysBeforehandWhatWillLeave) {
  const auto releases = plan({.config = config(kPrivate)});
  ASSERT_EQ(releases.size(), 1u);
  EXPECT_EQ(releases[0].what, "model");
  EXPECT_EQ(releases[0].times, 4);
  EXPECT_GT(releases[0].noise_multiplier, 0);
  EXPECT_EQ(releases[0].why_unproven, "");
  EXPECT_THROW(plan({.config = config(kPrivate)}, 3), Error);
}

TEST_F(LibraryRun, ExplainsMistakesInOneLine) {
  EXPECT_THROW(sotto::Run({.config = at("nowhere.toml").string()}), Error);
  try {
    sotto::Run run({.config = config(), .set = {"method.name=fedavgg"}, .folder = at("run")});
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::strstr(error.what(), "did you mean 'fedavg'"), nullptr) << error.what();
  }
  EXPECT_FALSE(std::filesystem::exists(at("run")));
  EXPECT_THROW(read_summary(at("nowhere")), Error);
}

}  // namespace
}  // namespace sotto
