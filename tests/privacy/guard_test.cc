#include "privacy/guard.h"

#include "../support/expect_user_error.h"
#include "../support/temp_folder.h"
#include "base/files.h"

#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <functional>
#include <limits>
#include <thread>
#include <vector>

namespace sotto::privacy {
namespace {

class Guarded : public ::testing::Test {
 protected:
  Guarded() { promise("epsilon = 1.0\ndelta = 1e-5\nadjacency = \"add-remove\"\n"); }

  void promise(const std::string& budget) const {
    fs::create_directories(home_);
    write_file_atomically(home_ / "budget.toml", budget);
  }
  static GuardedRelease update(const std::string& key, double multiplier = 50) {
    return {.what = "update", .key = key, .bound = 1.0, .noise_multiplier = multiplier};
  }
  static bool same(const NamedTensors& a, const NamedTensors& b) { return a[0].value.equal(b[0].value); }

  const test::TempFolder temporary_;
  fs::path home_ = temporary_ / "home";
  const NamedTensors ones_ = {{"w", at::ones({3, 4})}};
};

TEST_F(Guarded, AKeyGivesTheSameBytesForEverAndIsPaidForOnce) {
  NamedTensors first;
  {
    Guard guard(home_, "patients");
    first = guard.release(update("round 1"), ones_);
    EXPECT_TRUE(same(guard.release(update("round 1"), ones_), first));
    EXPECT_TRUE(same(guard.release(update("round 1"), {{"w", at::zeros({3, 4})}}), first)) << "whatever is trained now";
    EXPECT_FALSE(same(guard.release(update("round 2"), ones_), first));
    EXPECT_EQ(guard.home().ledger().rows(), 2);
  }
  Guard again(home_, "patients");
  EXPECT_TRUE(same(again.release(update("round 1"), ones_), first));
  EXPECT_EQ(again.home().ledger().rows(), 2);
  again.home().ledger().verify_chain();
}

TEST_F(Guarded, AKeyStandsForOneKindOfRelease) {
  Guard guard(home_, "patients");
  guard.release(update("key"), ones_);
  EXPECT_USER_ERROR(guard.release(update("key", 51), ones_), "was used for another release");
  EXPECT_USER_ERROR(guard.release(update("key"), {{"w", at::ones({4, 3})}}), "was used for another release");
  EXPECT_EQ(guard.home().ledger().rows(), 1);
}

TEST_F(Guarded, TheBudgetHoldsWhateverIsAsked) {
  Guard guard(home_, "patients");
  int64_t paid = 0;
  try {
    for (; paid < 1000; ++paid) guard.release(update(std::to_string(paid), 20), ones_);
  } catch (const BudgetSpent&) {
  }
  EXPECT_GT(paid, 5);
  EXPECT_LT(paid, 1000);
  EXPECT_EQ(guard.home().ledger().rows(), paid);
  EXPECT_LE(guard.spent(), guard.budget());
  EXPECT_GT(guard.spent(), 0.8 * guard.budget());
  EXPECT_THROW(guard.release(update(std::to_string(paid), 20), ones_), BudgetSpent) << "the key was not used up";
  EXPECT_NO_THROW(guard.release(update("0", 20), ones_)) << "what was paid for can be had again";
}

TEST_F(Guarded, ValuesAreClippedAndNoiseIsWhatWasPaidFor) {
  promise("epsilon = 1000000.0\ndelta = 1e-5\nadjacency = \"replace\"\n");
  Guard guard(home_, "patients");
  const at::Tensor far = at::full({10000}, 1000.0, at::kDouble);
  const at::Tensor clipped = guard.release(update("faint", 0.001), {{"w", far}})[0].value;
  EXPECT_NEAR(clipped.norm().item<double>(), 1.0, 0.3) << "0.002 of noise on each of 10,000 coordinates";
  EXPECT_EQ(far[0].item<double>(), 1000.0) << "the caller's numbers are left alone";
  const at::Tensor loud = guard.release(update("loud", 5), {{"w", at::zeros({10000})}})[0].value;
  // One record may turn a value of norm 1 round: 5 · 2. Six standard errors of a standard deviation.
  EXPECT_NEAR(loud.std().item<double>(), 10.0, 6 * 10.0 / std::sqrt(20000.0));
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(guard.release(update("nan", 5), {{"w", at::full({3}, nan)}})[0].value.isfinite().all().item<bool>());
}

TEST_F(Guarded, PerRecordTheBoundIsOfOneRecord) {
  promise("epsilon = 1000000.0\ndelta = 1e-5\nadjacency = \"add-remove\"\n");
  Guard guard(home_, "patients");
  GuardedRelease mean = update("mean", 0.001);
  mean.per_record = true;
  mean.divisor = 10;
  const at::Tensor sum = guard.release(mean, {{"w", at::full({20, 4}, 100.0)}})[0].value;
  EXPECT_EQ(sum.sizes().vec(), (std::vector<int64_t>{4}));
  EXPECT_NEAR(sum.norm().item<double>(), 2.0, 0.05) << "20 records of norm 1, over 10";
  mean.key = "loud";
  mean.noise_multiplier = 5;
  const at::Tensor loud = guard.release(mean, {{"w", at::zeros({3, 10000})}})[0].value;
  EXPECT_NEAR(loud.std().item<double>(), 0.5, 6 * 0.5 / std::sqrt(20000.0)) << "one record moves it by 1/10";
}

TEST_F(Guarded, WholeClientsAreNotBoundedRecordByRecord) {
  promise("epsilon = 1.0\ndelta = 1e-5\nadjacency = \"replace\"\nunit = \"client\"\n");
  Guard guard(home_, "patients");
  GuardedRelease mean = update("mean");
  mean.per_record = true;
  EXPECT_USER_ERROR(guard.release(mean, ones_), "bounds one record only");
}

TEST_F(Guarded, BadRequestsAreOneLineAndCostNothing) {
  Guard guard(home_, "patients");
  GuardedRelease request = update("");
  EXPECT_USER_ERROR(guard.release(request, ones_), "the key is empty");
  request = update("key");
  request.bound = std::numeric_limits<double>::infinity();
  EXPECT_USER_ERROR(guard.release(request, ones_), "bound must be above 0");
  EXPECT_USER_ERROR(guard.release(update("key", 0), ones_), "noise_multiplier must be above 0");
  EXPECT_USER_ERROR(guard.release(update("key"), {}), "nothing to release");
  EXPECT_USER_ERROR(guard.release(update("key"), {{"w", at::ones({3}, at::kLong)}}), "floating-point");
  EXPECT_USER_ERROR(guard.release(update("key"), {{"w", at::ones({3})}, {"b", at::ones({3})}, {"w", at::ones({3})}}),
                    "two tensors are called 'w'");
  EXPECT_USER_ERROR(guard.release(update("key"), {{"__metadata__", at::ones({3})}}), "may be called '__metadata__'");
  EXPECT_USER_ERROR(guard.release(update("key"), {{"\xff", at::ones({3})}}), "not UTF-8");
  EXPECT_USER_ERROR(guard.release(update("key"), {{"a\nb", at::ones({3})}, {"a\nb", at::ones({3})}}), "'a\\nb'");
  EXPECT_EQ(guard.home().ledger().rows(), 0);
  EXPECT_USER_ERROR(Guard(temporary_ / "nothing", "patients"), "is not a home");
}

TEST_F(Guarded, WhatWasReleasedAndIsDamagedIsNotMadeAnew) {
  Guard guard(home_, "patients");
  guard.release(update("key"), ones_);
  for (const auto& entry : fs::directory_iterator(home_ / "released")) write_file_atomically(entry.path(), "other");
  EXPECT_USER_ERROR(guard.release(update("key"), ones_), "is not what was released");
  EXPECT_EQ(guard.home().ledger().rows(), 1);
}

TEST_F(Guarded, ThreadsShareOneGuard) {
  Guard guard(home_, "patients");
  std::vector<NamedTensors> results(8);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < results.size(); ++i) {
    threads.emplace_back([&, i] { results[i] = guard.release(update(std::to_string(i % 2)), ones_); });
  }
  for (std::thread& thread : threads) thread.join();
  for (size_t i = 2; i < results.size(); ++i) EXPECT_TRUE(same(results[i], results[i % 2]));
  EXPECT_EQ(guard.home().ledger().rows(), 2);
}

TEST_F(Guarded, AForkedProcessLeavesItAlone) {
  Guard guard(home_, "patients");
  guard.release(update("before"), ones_);
  const pid_t child = ::fork();
  if (child == 0) {
    int refused = 0;
    const std::vector<std::function<void()>> uses = {[&] { guard.release(update("key"), ones_); },
                                                     [&] { guard.spent(); }, [&] { guard.releases(); }};
    for (const auto& use : uses) {
      try {
        use();
      } catch (const UserError&) {
        ++refused;
      }
    }
    ::_exit(refused);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 3);
  guard.release(update("after"), ones_);
  EXPECT_EQ(guard.releases(), 2);
}

TEST_F(Guarded, AMultiplierForAnEpsilonCostsNoMore) {
  Guard guard(home_, "patients");
  guard.release(update("key", guard.multiplier_for(0.5)), ones_);
  EXPECT_LE(guard.spent(), 0.5);
  EXPECT_GT(guard.spent(), 0.499);
}

}  // namespace
}  // namespace sotto::privacy
