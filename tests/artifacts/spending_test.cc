#include "privacy/spending.h"

#include "artifacts/privacy_section.h"
#include "base/files.h"
#include "run/execute.h"
#include "small_setup.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace sotto::artifacts {
namespace {

class SpendingOfRuns : public ::testing::TestWithParam<const char*> {
 protected:
  ~SpendingOfRuns() override { fs::remove_all(folder_); }
  const fs::path folder_ = fs::temp_directory_path() / fmt::format("sotto-spending-{}", ::getpid());
};

// Round by round it must come to what the whole ledger comes to.
TEST_P(SpendingOfRuns, EndsAtWhatTheLedgerSays) {
  const std::string method = GetParam();
  const bool plain = method == "fedavg" || method == "local-only";
  const auto setup =
      federation::small_setup("rounds = 4\n[data]\nclients = 4\n[federation]\nbatch = 16\ncohort = 2\n" +
                              fmt::format("[method]\nname = \"{}\"\n", method) + federation::needed_options(method) +
                              (plain ? "" : federation::privacy_terms(method)));
  const auto summary = run::execute(setup, {.folder = folder_, .resume = false, .threads = 1});
  ASSERT_TRUE(summary.has_value());
  const privacy::Ledger ledger(folder_ / "ledger.sqlite", privacy::Ledger::Mode::kRead);
  privacy::Spending spending = declared_spending(setup.spec());
  double before = 0;
  for (int64_t round = 1; round <= 4; ++round) {
    spending.advance_to(round, ledger);
    const double proven = spending.worst().proven;
    EXPECT_GE(proven, before) << "nothing is ever given back";
    before = proven;
  }
  const auto exact = privacy::guarantees(ledger, declared_observer(setup.spec()), 4, accounted_delta(setup.spec()));
  double worst = 0;
  for (int64_t client = 0; client < 4; ++client) {
    EXPECT_EQ(spending.of(client).proven, exact[static_cast<size_t>(client)].proven) << client;
    EXPECT_EQ(spending.of(client).claimed, exact[static_cast<size_t>(client)].claimed) << client;
    worst = std::max(worst, exact[static_cast<size_t>(client)].proven);
  }
  EXPECT_EQ(spending.worst().proven, worst);
  privacy::Spending at_once = declared_spending(setup.spec());
  at_once.advance_to(4, ledger);
  EXPECT_EQ(at_once.worst().proven, worst);
  spending.advance_to(2, ledger);
  EXPECT_EQ(spending.worst().proven, worst) << "rows are never taken in twice";
}

INSTANTIATE_TEST_SUITE_P(Methods, SpendingOfRuns,
                         ::testing::Values("fedavg", "local-only", "ldp-fedavg", "dp-fedavg", "nbafl"));

}  // namespace
}  // namespace sotto::artifacts
