#include "work_folder.h"

#include <ATen/ATen.h>

#include <sotto/privacy.h>

namespace sotto {
namespace {

class LibraryGuard : public WorkFolder {
 protected:
  static Release update(const std::string& key, double multiplier) {
    return {.what = "update", .key = key, .bound = 1, .noise_multiplier = multiplier};
  }
  const Budget budget_{.epsilon = 2, .delta = 1e-6, .adjacency = Adjacency::kReplace};
  const Tensors values_ = {{"w", at::full({3, 4}, 5.0)}, {"b", at::zeros({3}, at::kDouble)}};
};

TEST_F(LibraryGuard, GivesTheSameForTheSameKeyAndRefusesBeyondTheBudget) {
  Guard guard({.home = at("home"), .budget = budget_});
  const double multiplier = guard.multiplier_for(1.2);
  const Tensors first = guard.release(update("1", multiplier), values_);
  ASSERT_EQ(first.size(), 2u);
  EXPECT_EQ(first[0].first, "w");
  EXPECT_EQ(first[0].second.sizes(), at::IntArrayRef({3, 4}));
  EXPECT_FALSE(at::allclose(first[0].second, values_[0].second));
  const double spent = guard.spent();
  EXPECT_GT(spent, 1.1);
  EXPECT_LE(spent, 1.2);
  EXPECT_TRUE(at::equal(guard.release(update("1", multiplier), values_)[0].second, first[0].second));
  EXPECT_EQ(guard.spent(), spent);
  guard.release(update("2", multiplier), values_);
  EXPECT_THROW(guard.release(update("3", multiplier), values_), BudgetSpent);
  EXPECT_EQ(guard.releases(), 2);
  EXPECT_LE(guard.spent(), guard.budget());
}

TEST_F(LibraryGuard, LeavesALedgerThatCanBeRead) {
  {
    Guard guard({.home = at("home"), .budget = budget_});
    guard.release(update("1", 8), values_);
    EXPECT_THROW(guard.release({.what = "update", .key = "2", .bound = 0, .noise_multiplier = 1}, values_), Error);
  }
  const Ledger ledger(at("home"));
  ledger.verify();
  const auto rows = ledger.rows();
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].what, "update");
  EXPECT_EQ(rows[0].mechanism, "gaussian");
  EXPECT_NEAR(rows[0].noise_scale / rows[0].sensitivity, 8, 1e-9);
  EXPECT_NEAR(ledger.spent(0, 1e-6).proven, Guard({.home = at("home")}).spent(), 1e-12);
  EXPECT_THROW(ledger.spent(0, 1e-6, "everybody"), Error);
  EXPECT_THROW(ledger.spent(-1, 1e-6), Error);
  EXPECT_THROW(Ledger(at("nowhere")), Error);
}

TEST_F(LibraryGuard, LeavesNoPromiseBehindThatCannotBeKept) {
  EXPECT_THROW(Guard({.home = at("home"), .budget = Budget{.epsilon = -1, .delta = 1e-6}}), Error);
  EXPECT_FALSE(std::filesystem::exists(at("home"))) << "nothing is made before the promise is known to be one";
  EXPECT_THROW(Guard({.home = at("home")}), Error);
  EXPECT_EQ(Guard({.home = at("home"), .budget = budget_}).budget(), 2);
  // What was promised first holds.
  EXPECT_EQ(Guard({.home = at("home"), .budget = Budget{.epsilon = 9, .delta = 1e-6}}).budget(), 2);
}

}  // namespace
}  // namespace sotto
