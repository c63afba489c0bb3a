#include "base/parallel.h"

#include <ATen/Parallel.h>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

namespace sotto {
namespace {

class ParallelInOrder : public testing::TestWithParam<int> {};

TEST_P(ParallelInOrder, FinishesEveryItemOnceInOrder) {
  constexpr int64_t kItems = 200;
  std::vector<std::atomic<int>> worked(kItems);
  std::vector<int64_t> finished;
  parallel_in_order(
      kItems, GetParam(),
      [&](int64_t item, int) {
        if (item % 7 == 0) std::this_thread::sleep_for(std::chrono::microseconds(300));
        ++worked[static_cast<size_t>(item)];
      },
      [&](int64_t item) {
        EXPECT_EQ(worked[static_cast<size_t>(item)], 1);
        finished.push_back(item);
      });
  ASSERT_EQ(finished.size(), static_cast<size_t>(kItems));
  for (int64_t i = 0; i < kItems; ++i) EXPECT_EQ(finished[static_cast<size_t>(i)], i);
}

TEST_P(ParallelInOrder, WorkersAreNumberedAndNeverShared) {
  std::vector<std::atomic<int>> busy(static_cast<size_t>(GetParam()));
  parallel_in_order(
      100, GetParam(),
      [&](int64_t, int worker) {
        EXPECT_EQ(busy.at(static_cast<size_t>(worker))++, 0);
        std::this_thread::yield();
        --busy.at(static_cast<size_t>(worker));
      },
      [](int64_t) {});
}

TEST_P(ParallelInOrder, KeepsFewItemsOpen) {
  std::atomic<int64_t> open{0};
  std::atomic<int64_t> most{0};
  parallel_in_order(
      300, GetParam(),
      [&](int64_t, int) {
        const int64_t now = ++open;
        int64_t seen = most;
        while (now > seen && !most.compare_exchange_weak(seen, now)) {
        }
      },
      [&](int64_t item) {
        if (item % 50 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
        --open;
      });
  EXPECT_LE(most, 2 * GetParam());
  EXPECT_EQ(open, 0);
}

TEST_P(ParallelInOrder, AnExceptionInWorkStopsTheRestAndIsRethrown) {
  std::atomic<int64_t> started{0};
  std::vector<int64_t> finished;
  const auto run = [&] {
    parallel_in_order(
        100000, GetParam(),
        [&](int64_t item, int) {
          ++started;
          if (item == 20) throw std::runtime_error("item 20");
        },
        [&](int64_t item) { finished.push_back(item); });
  };
  EXPECT_THROW(run(), std::runtime_error);
  EXPECT_LT(started, 200);
  for (size_t i = 0; i < finished.size(); ++i) EXPECT_EQ(finished[i], static_cast<int64_t>(i));
  EXPECT_LE(finished.size(), 20u);
}

TEST_P(ParallelInOrder, AnExceptionInFinishIsRethrown) {
  int64_t last = -1;
  const auto run = [&] {
    parallel_in_order(
        1000, GetParam(), [](int64_t, int) {},
        [&](int64_t item) {
          last = item;
          if (item == 5) throw std::invalid_argument("finish");
        });
  };
  EXPECT_THROW(run(), std::invalid_argument);
  EXPECT_EQ(last, 5);
}

INSTANTIATE_TEST_SUITE_P(Threads, ParallelInOrder, testing::Values(1, 2, 3, 8));

TEST(ParallelInOrderEdges, NothingToDo) {
  parallel_in_order(
      0, 4, [](int64_t, int) { FAIL(); }, [](int64_t) { FAIL(); });
}

TEST(ParallelInOrderEdges, WorkersUseOneTorchThread) {
  parallel_in_order(
      4, 2, [](int64_t, int) { EXPECT_EQ(at::get_num_threads(), 1); }, [](int64_t) {});
}

TEST(AvailableThreads, IsPositive) {
  EXPECT_GE(available_threads(), 1);
}

}  // namespace
}  // namespace sotto
