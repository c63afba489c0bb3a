#include "privacy/ledger.h"

#include "../support/expect_user_error.h"
#include "../support/synced_paths.h"
#include "base/error.h"
#include "base/files.h"
#include "privacy/accounting/gaussian.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

namespace sotto::privacy {
namespace {

Event event(int64_t round, int64_t client) {
  return {.round = round,
          .client = client,
          .observer = "server",
          .what = "model",
          .mechanism = kClearMechanism,
          .why_unproven = "why"};
}

Event gaussian(int64_t round, int64_t client, double multiplier) {
  return {.round = round,
          .client = client,
          .observer = "server",
          .what = "model",
          .mechanism = kGaussianMechanism,
          .noise_scale = multiplier,
          .sensitivity = 1.0,
          .generator = "replay"};
}

PrivacyTerms terms(double epsilon) {
  PrivacyTerms options;
  options.epsilon = epsilon;
  options.delta = 1e-5;
  options.adjacency = Adjacency::kReplace;
  return options;
}

class LedgerFile : public ::testing::Test {
 protected:
  LedgerFile() { fs::create_directories(folder_); }
  ~LedgerFile() override { fs::remove_all(folder_); }

  void change(const std::string& sql) const {
    sqlite3* database = nullptr;
    ASSERT_EQ(sqlite3_open(file_.c_str(), &database), SQLITE_OK);
    EXPECT_EQ(sqlite3_exec(database, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK) << sqlite3_errmsg(database);
    sqlite3_close(database);
  }

  // Three committed rows.
  void write_rows() const {
    Ledger ledger(file_);
    for (int64_t client = 0; client < 3; ++client) ledger.spend(gaussian(1, client, 4.0));
    ledger.commit();
  }

  const fs::path folder_ = fs::temp_directory_path() / fmt::format("sotto-ledger-{}", ::getpid());
  const fs::path file_ = folder_ / "ledger.sqlite";
};

TEST_F(LedgerFile, KeepsRowsAcrossReopening) {
  {
    Ledger ledger(file_);
    ledger.spend(event(1, 2));
    ledger.spend(gaussian(1, 3, 2.5));
    ledger.commit();
  }
  const Ledger ledger(file_);
  EXPECT_THAT(ledger.events(), ::testing::ElementsAre(event(1, 2), gaussian(1, 3, 2.5)));
  EXPECT_EQ(ledger.rows(), 2);
  ledger.verify_chain();
}

TEST_F(LedgerFile, ItsNameIsDurableWhenItIsMade) {
  test::SyncedPaths::all().take();
  const Ledger ledger(file_);
  EXPECT_THAT(test::SyncedPaths::all().take(), ::testing::Contains(fs::canonical(folder_)));
}

TEST_F(LedgerFile, EveryRowHasItsLink) {
  write_rows();
  Ledger ledger(file_);
  EXPECT_EQ(ledger.link(3), ledger.head());
  const std::string third = ledger.head();
  ledger.spend(gaussian(2, 0, 4.0));
  EXPECT_EQ(ledger.link(3), third);
  EXPECT_EQ(ledger.link(4), ledger.head());
  EXPECT_NE(ledger.link(4), third);
  EXPECT_EQ(ledger.link(0), "");
  EXPECT_EQ(ledger.link(5), "");
}

TEST_F(LedgerFile, AnEmptyFileIsNoLedgerToRead) {
  write_file_atomically(file_, "");
  EXPECT_USER_ERROR(Ledger(file_, Ledger::Mode::kRead), "is not a ledger");
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
  const Ledger ledger(file_);
  EXPECT_THAT(ledger.events(), ::testing::ElementsAre(event(1, 1)));
  ledger.verify_chain();
}

TEST_F(LedgerFile, KilledWhileItIsMadeItIsWholeOrNotThere) {
  for (int i = 0; i < 60; ++i) {
    const fs::path file = folder_ / fmt::format("{}.sqlite", i);
    const pid_t child = ::fork();
    if (child == 0) {
      Ledger ledger(file);
      ledger.agree(terms(1.0), HeldTo::kProven);
      ::pause();
    }
    ::usleep(static_cast<useconds_t>(i) * 200);
    ::kill(child, SIGKILL);
    int status = 0;
    ::waitpid(child, &status, 0);
    ASSERT_NO_THROW(Ledger(file).agree(terms(1.0), HeldTo::kProven)) << "killed after " << i * 200 << " us";
  }
}

TEST_F(LedgerFile, TheSameReleaseAgainSpendsNothing) {
  Ledger ledger(file_);
  const int64_t first = ledger.spend(event(1, 2)).row();
  const int64_t other = ledger.spend(event(1, 3)).row();
  EXPECT_EQ(ledger.spend(event(1, 2)).row(), first);
  EXPECT_NE(first, other);
  EXPECT_EQ(ledger.events().size(), 2U);
}

// After a crash secure noise is drawn anew: what was sent before may be known, so both count.
TEST_F(LedgerFile, ASecureReleaseAgainIsPaidAgain) {
  Ledger ledger(file_);
  Event secure = gaussian(1, 2, 4.0);
  secure.generator = "secure";
  ledger.spend(secure);
  ledger.spend(secure);
  EXPECT_EQ(ledger.events().size(), 2U);
  EXPECT_EQ(ledger.generator(), "secure");
}

TEST_F(LedgerFile, AnotherReleaseInTheSamePlaceIsRefused) {
  Ledger ledger(file_);
  ledger.spend(event(1, 2));
  EXPECT_THROW(ledger.spend(gaussian(1, 2, 1.0)), UserError);
}

TEST_F(LedgerFile, ForeignAndTruncatedFilesAreUserErrors) {
  write_file_atomically(file_, "this is not a database, however long the text may be");
  EXPECT_THROW(Ledger ledger(file_), UserError);
  EXPECT_THROW(Ledger ledger(folder_ / "missing" / "ledger.sqlite"), UserError);
  EXPECT_THROW(Ledger(folder_ / "missing.sqlite", Ledger::Mode::kRead), UserError);
  fs::remove(file_);
  write_rows();
  fs::resize_file(file_, fs::file_size(file_) / 2);
  EXPECT_THROW(Ledger(file_).verify_chain(), UserError);
}

TEST_F(LedgerFile, ChangedRowsAreFound) {
  write_rows();
  change("UPDATE releases SET noise = 400 WHERE client = 1");
  const Ledger ledger(file_);
  try {
    ledger.verify_chain();
    FAIL() << "a changed row went unnoticed";
  } catch (const UserError& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("row 2"));
  }
}

TEST_F(LedgerFile, RemovedRowsAreFound) {
  write_rows();
  change("DELETE FROM releases WHERE client = 2");
  EXPECT_THROW(Ledger ledger(file_), UserError);
}

TEST_F(LedgerFile, AnOlderFormatIsNamed) {
  write_rows();
  change("PRAGMA user_version = 1");
  EXPECT_THROW(Ledger ledger(file_), UserError);
}

TEST_F(LedgerFile, ASecondWriterIsRefusedAndAReaderIsNot) {
  Ledger first(file_);
  first.spend(event(1, 1));
  first.commit();
  EXPECT_THROW(Ledger second(file_), UserError);
  EXPECT_EQ(Ledger(file_, Ledger::Mode::kRead).events().size(), 1U);
}

TEST_F(LedgerFile, TheClockIsNotTrusted) {
  write_rows();
  change("UPDATE releases SET time = 99999999999 WHERE client = 2");
  Ledger ledger(file_);
  ledger.spend(gaussian(2, 0, 4.0));
  EXPECT_EQ(ledger.events().back().round, 2) << "rows keep their order though the clock went backwards";
}

TEST(Budget, IsNeverExceeded) {
  Ledger ledger;
  ledger.agree(terms(1.0), HeldTo::kProven);
  const double multiplier = 10.0;
  int64_t rounds = 0;
  EXPECT_THROW(
      {
        for (rounds = 0; rounds < 1000; ++rounds) ledger.spend(gaussian(rounds, 7, multiplier));
      },
      BudgetSpent);
  EXPECT_EQ(ledger.events().size(), static_cast<size_t>(rounds)) << "the refused release left no row";
  EXPECT_GT(rounds, 1);
  const Tally spent = ledger.tallies("server").at(7);
  EXPECT_LE(spent.proven(1e-5), 1.0);
  Tally more = spent;
  more.add(gaussian(0, 7, multiplier));
  EXPECT_GT(more.proven(1e-5), 1.0) << "all that fits was allowed";
  ledger.spend(gaussian(1, 8, multiplier));
}

TEST(Budget, BelongsToTheClient) {
  Ledger ledger;
  PrivacyTerms options = terms(1.0);
  options.budgets = {0.1, 10.0};
  ledger.agree(options, HeldTo::kProven);
  EXPECT_THROW(ledger.spend(gaussian(1, 0, 4.0)), BudgetSpent);
  ledger.spend(gaussian(1, 1, 4.0));
  EXPECT_THROW(ledger.spend(gaussian(1, 2, 4.0)), BudgetSpent);
}

TEST(Budget, ThatIsHardlyExceededIsStillSeenToBe) {
  Ledger ledger;
  Tally one;
  one.add(gaussian(1, 0, 4.0));
  const double epsilon = one.proven(1e-5);
  ledger.agree(terms(epsilon * (1 - 1e-6)), HeldTo::kProven);
  try {
    ledger.spend(gaussian(1, 0, 4.0));
    ADD_FAILURE() << "nothing was refused";
  } catch (const BudgetSpent& refusal) {
    const std::string text = refusal.what();
    EXPECT_FALSE(text.ends_with(fmt::format("would make it {:.4g}", epsilon * (1 - 1e-6)))) << text;
  }
}

TEST(Budget, AReleaseForEveryoneCountsForEveryone) {
  Ledger ledger;
  ledger.agree(terms(1.0), HeldTo::kProven);
  ledger.spend(gaussian(1, 3, 6.0));
  const Event everyone = gaussian(1, kEveryone, 6.0);
  ledger.spend(everyone);
  EXPECT_THROW(ledger.spend(gaussian(2, 3, 6.0)), BudgetSpent);
  ledger.spend(gaussian(2, 4, 6.0));
}

TEST(Budget, SurvivesReopening) {
  const fs::path file = fs::temp_directory_path() / fmt::format("sotto-budget-{}.sqlite", ::getpid());
  {
    Ledger ledger(file);
    ledger.agree(terms(1.0), HeldTo::kProven);
    ledger.spend(gaussian(1, 0, 4.0));
    ledger.commit();
  }
  {
    Ledger ledger(file);
    EXPECT_THROW(ledger.spend(gaussian(2, 0, 4.0)), BudgetSpent);
    EXPECT_THROW(ledger.agree(terms(50.0), HeldTo::kProven), UserError)
        << "terms cannot be raised behind a client's back";
  }
  fs::remove(file);
  fs::remove(file.string() + "-wal");
  fs::remove(file.string() + "-shm");
}

TEST(Budget, APaperVariantIsHeldToItsOwnClaim) {
  Event loud = gaussian(1, 0, 0.5);
  loud.claim = {.by = kClaimRun, .epsilon = 0.05};
  Ledger sound, paper;
  sound.agree(terms(1.0), HeldTo::kProven);
  paper.agree(terms(1.0), HeldTo::kClaimed);
  EXPECT_THROW(sound.spend(loud), BudgetSpent);
  paper.spend(loud);
  const Guarantee guarantee = paper.tallies("server").at(0).guarantee(1e-5);
  EXPECT_LT(guarantee.claimed, 0.1);
  EXPECT_GT(guarantee.proven, 5.0);
}

TEST(Claims, AreCountedAsTheirPapersCount) {
  const auto claiming = [](const Claim& claim) {
    Event event = gaussian(1, 0, 0.5);
    event.claim = claim;
    return event;
  };
  Tally each, run, renyi, truth;
  each.add(claiming({.by = kClaimEach, .epsilon = 0.2}), 3);
  run.add(claiming({.by = kClaimRun, .epsilon = 0.2}), 3);
  renyi.add(claiming({.by = kClaimRenyi, .multiplier = 17.0, .steps = 1}), 12);
  truth.add(claiming({}), 3);
  EXPECT_NEAR(each.claimed(1e-5), 0.6, 1e-12) << "they add up";
  EXPECT_EQ(run.claimed(1e-5), 0.2) << "one claim for the whole run";
  EXPECT_NEAR(renyi.claimed(1e-5), 1.0, 0.01) << "orders 2 … 64 over twelve releases";
  EXPECT_EQ(truth.claimed(1e-5), truth.proven(1e-5));
  EXPECT_EQ(each.proven(1e-5), truth.proven(1e-5)) << "claims do not change what is true";
  Tally both = each;
  both.add(run);
  EXPECT_NEAR(both.claimed(1e-5), 0.8, 1e-12);
  EXPECT_TRUE(each.within(both));
  EXPECT_FALSE(both.within(each));
}

TEST(Claims, SurviveTheLedger) {
  Ledger ledger;
  Event event = gaussian(1, 0, 0.5);
  event.claim = {.by = kClaimRenyi, .multiplier = 17.0, .steps = 2, .epsilon = 0.25};
  ledger.spend(event);
  EXPECT_EQ(ledger.events().front(), event);
  ledger.verify_chain();
}

// (1 + e^ε) times what the noise is off by must fit into δ.
TEST(Tally, FinitePrecisionIsPaidForAtEveryEpsilon) {
  const auto with_noise = [](double noise) {
    Event event = gaussian(1, 2, noise);
    event.slack = 1e-32;
    Tally tally;
    tally.add(event);
    return tally;
  };
  const Tally usual = with_noise(1.0);
  EXPECT_EQ(usual.proven(1e-5), usual.proven_of_ideal_noise(1e-5));
  // At δ the plain bound would leave out e^ε·τ = 300 times δ; few numbers move far enough to be told by the cut.
  const Tally little = with_noise(0.11);
  const double ideal = little.proven_of_ideal_noise(1e-5);
  ASSERT_GT(ideal, 70);
  EXPECT_GT(little.proven(1e-5), ideal);
  EXPECT_LT(little.proven(1e-5), ideal * 1.001);
  // Where one number moves by 12.5 of the 16 standard deviations that noise reaches, the cut may show with 4e-3.
  EXPECT_TRUE(std::isinf(with_noise(0.08).proven(1e-5)));
  EXPECT_TRUE(std::isfinite(with_noise(0.08).proven(1e-2)));
  const Tally hardly_any = with_noise(0.02);
  EXPECT_TRUE(std::isfinite(hardly_any.proven_of_ideal_noise(1e-5)));
  const Guarantee nothing = hardly_any.guarantee(1e-5);
  EXPECT_TRUE(std::isinf(nothing.proven));
  ASSERT_EQ(nothing.why_unproven.size(), 1U);
  EXPECT_NE(nothing.why_unproven[0].find("finite precision"), std::string::npos);
}

TEST(Tally, EqualMultipliersUnderDifferentBoundsAreOneKind) {
  Tally planned, spent;
  planned.add(gaussian(1, 0, 28.9), 25);
  double bound = 8.0;
  for (int64_t round = 1; round <= 25; ++round, bound *= 0.91) {
    Event event = gaussian(round, 0, 28.9);
    event.sensitivity = bound;
    event.noise_scale = 28.9 * bound;
    spent.add(event);
  }
  EXPECT_TRUE(spent.within(planned));
  EXPECT_NEAR(spent.proven(1e-5) / planned.proven(1e-5), 1.0, 1e-9);
}

TEST(Observers, OnlyTheServerSeesWhatItWasTrustedWith) {
  Ledger ledger;
  ledger.spend({.round = 1,
                .client = 0,
                .observer = "server",
                .what = "update",
                .mechanism = kTrustedMechanism,
                .why_unproven = kTrustedReason});
  Event released = gaussian(1, 0, 4.0);
  released.observer = "clients";
  ledger.spend(released);
  EXPECT_TRUE(std::isinf(ledger.tallies("server").at(0).proven(1e-5)));
  EXPECT_TRUE(std::isfinite(ledger.tallies("clients").at(0).proven(1e-5)));
  EXPECT_TRUE(std::isfinite(ledger.tallies("public").at(0).proven(1e-5)));
}

TEST(Tally, ExactCompositionDoesNotDependOnOrder) {
  Tally one, two;
  for (const double z : {4.0, 8.0, 4.0}) one.add(gaussian(0, 0, z));
  for (const double z : {8.0, 4.0, 4.0}) two.add(gaussian(0, 0, z));
  EXPECT_EQ(one.proven(1e-5), two.proven(1e-5));
  EXPECT_FALSE(one < two);
  EXPECT_FALSE(two < one);
}

TEST(Tally, TheNoisesFinitePrecisionCostsDelta) {
  Event exact = gaussian(0, 0, 4.0), rough = exact;
  rough.slack = 5e-6;
  Tally a, b, c;
  a.add(exact);
  b.add(rough);
  c.add(rough, 3);
  EXPECT_GT(b.proven(1e-5), a.proven(1e-5));
  EXPECT_TRUE(std::isinf(c.proven(1e-5))) << "δ is used up";
}

}  // namespace
}  // namespace sotto::privacy
