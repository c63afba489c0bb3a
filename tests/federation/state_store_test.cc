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

using Make = std::function<std::unique_ptr<StateStore>(const fs::path&)>;

class Stores : public ::testing::TestWithParam<std::pair<const char*, Make>> {
 protected:
  ~Stores() override { fs::remove_all(folder_); }
  std::unique_ptr<StateStore> open() { return GetParam().second(folder_); }
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

INSTANTIATE_TEST_SUITE_P(All, Stores,
                         ::testing::Values(std::pair<const char*, Make>{"memory", make_memory_store},
                                           std::pair<const char*, Make>{"disk", make_disk_store}),
                         [](const auto& test) { return test.param.first; });

}  // namespace
}  // namespace sotto::federation
