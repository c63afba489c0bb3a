#include "federation/state_store.h"

#include <ATen/ATen.h>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <functional>

namespace sotto::federation {
namespace {

namespace fs = std::filesystem;

privacy::PrivateState state(double value) {
  return privacy::PrivateState({{"w", at::full({2}, value)}});
}

double value_of(const StateStore& store, int64_t client) {
  const auto found = store.get(client);
  return found.empty() ? -1.0 : found.values()[0].value[0].item<double>();
}

using Make = std::function<std::unique_ptr<StateStore>(const fs::path&, StatePart)>;

class Stores : public ::testing::TestWithParam<std::pair<const char*, Make>> {
 protected:
  ~Stores() override { fs::remove_all(folder_); }
  std::unique_ptr<StateStore> open(StatePart part = {}) { return GetParam().second(folder_, part); }
  const fs::path folder_ = fs::temp_directory_path() / fmt::format("sotto-states-{}", ::getpid());
};

TEST_P(Stores, AClientWithoutStateIsEmpty) {
  EXPECT_TRUE(open()->get(3).empty());
}

TEST_P(Stores, EitherOfTheLastTwoCommitsCanBeRestored) {
  auto store = open();
  store->put(1, 1, state(10));
  store->commit(1);
  store->put(1, 2, state(20));
  store->put(2, 2, state(21));
  store->commit(2);
  store->put(1, 3, state(30));
  store->commit(3);
  store->put(1, 4, state(40));
  EXPECT_EQ(value_of(*store, 1), 40);

  auto again = open();
  again->restore(3);
  EXPECT_EQ(value_of(*again, 1), 30);
  EXPECT_EQ(value_of(*again, 2), 21);
  again = open();
  again->restore(2);
  EXPECT_EQ(value_of(*again, 1), 20);
  EXPECT_EQ(value_of(*again, 2), 21);
}

// Rounds that are run again may have other clients: whose cohort is secret, it is drawn anew.
TEST_P(Stores, WhatACrashedRoundLeftIsNobodysState) {
  auto store = open();
  store->put(5, 1, state(50));  // crashes before anything was committed
  store = open();
  store->put(1, 1, state(10));
  store->commit(1);
  store->put(2, 2, state(20));  // crashes
  store = open();
  store->restore(1);
  store->put(3, 2, state(30));
  store->commit(2);
  store = open();
  store->restore(2);
  EXPECT_EQ(value_of(*store, 1), 10);
  EXPECT_EQ(value_of(*store, 2), -1) << "of a round that never was";
  EXPECT_EQ(value_of(*store, 3), 30);
  EXPECT_EQ(value_of(*store, 5), -1);
}

TEST_P(Stores, RestoredStoreGoesOn) {
  auto store = open();
  for (int64_t round = 1; round <= 3; ++round) {
    store->put(1, round, state(static_cast<double>(round)));
    store->commit(round);
  }
  store = open();
  store->restore(2);
  store->put(1, 3, state(33));
  store->commit(3);
  store->put(1, 4, state(44));
  store->commit(4);
  store = open();
  store->restore(4);
  EXPECT_EQ(value_of(*store, 1), 44);
  EXPECT_LE(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 3) << "old versions are removed";
}

// Of several processes that keep a part each: what one that died left of a round does not count, however many go on.
TEST_P(Stores, PartsMayGoOnWithAnotherCount) {
  for (int64_t index = 0; index < 2; ++index) {
    auto part = open({index, 2});
    part->put(index, 1, state(10));
    part->commit(1);
  }
  auto died = open({0, 2});
  died->restore(1);
  died->put(0, 2, state(-1));
  died->commit(2);

  for (int64_t index = 2; index >= 0; --index) {
    auto part = open({index, 3});
    part->restore(1);
    EXPECT_EQ(part->get(0).empty(), index != 0) << "others' clients are not there";
    if (index < 2) {
      EXPECT_EQ(value_of(*part, index), 10);
      part->put(index, 2, state(20));
    }
    part->commit(2);
  }
  auto whole = open();
  whole->restore(2);
  EXPECT_EQ(value_of(*whole, 0), 20);
  EXPECT_EQ(value_of(*whole, 1), 20);
}

TEST_P(Stores, FinishedRunsKeepTheLastOrNone) {
  auto store = open();
  store->put(2, 1, state(21));
  for (int64_t round = 1; round <= 3; ++round) {
    store->put(1, round, state(static_cast<double>(round)));
    store->commit(round);
  }
  const auto files = [&] { return std::distance(fs::directory_iterator(folder_), fs::directory_iterator()); };
  const auto before = files();
  discard_states(folder_, 3);
  EXPECT_LT(files(), before);
  EXPECT_FALSE(states_were_discarded(folder_));
  store = open();
  store->restore(3);
  EXPECT_EQ(value_of(*store, 1), 3);
  EXPECT_EQ(value_of(*store, 2), 21);
  discard_states(folder_, 0);
  EXPECT_TRUE(states_were_discarded(folder_));
  EXPECT_EQ(files(), 1) << "only the note that they are gone";
}

INSTANTIATE_TEST_SUITE_P(All, Stores,
                         ::testing::Values(std::pair<const char*, Make>{"memory", make_memory_store},
                                           std::pair<const char*, Make>{"disk", make_disk_store}),
                         [](const auto& test) { return test.param.first; });

}  // namespace
}  // namespace sotto::federation
