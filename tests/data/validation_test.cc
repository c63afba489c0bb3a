// Records that are set apart to choose settings by.
#include "data/partition.h"

#include <ATen/ATen.h>

#include <gtest/gtest.h>

namespace sotto::data {
namespace {

Dataset three_classes(int64_t records, int64_t test) {
  Dataset dataset;
  dataset.name = "made up";
  dataset.kind = Kind::kFeatures;
  dataset.class_names = {"a", "b", "c"};
  dataset.domain_names = {"only"};
  for (auto [split, count] : {std::pair{&dataset.train, records}, {&dataset.test, test}}) {
    split->x = at::zeros({count, 2});
    split->y = at::arange(count, at::kLong).remainder(3);
    split->domain = at::zeros({count}, at::kLong);
  }
  return dataset;
}

TEST(Validation, IsApartFromTrainingAndTestAndSpreadOverClasses) {
  const Dataset dataset = three_classes(1200, 0);
  DataOptions options;
  options.clients = 4;
  const auto whole = make_partition(options, dataset, 1);
  options.validation = 0.1;
  const auto partition = make_partition(options, dataset, 1);
  for (int64_t client = 0; client < 4; ++client) {
    const Shard before = whole->shard(client), shard = partition->shard(client);
    EXPECT_FALSE(before.validation.defined());
    EXPECT_EQ(shard.validation.size(0), 24);
    EXPECT_TRUE(at::equal(shard.test, before.test)) << "test records stay what they are";
    EXPECT_TRUE(at::equal(std::get<0>(at::cat({shard.train, shard.validation}).sort()), before.train));
    EXPECT_FALSE(at::isin(shard.validation, shard.test).any().item<bool>());
    const at::Tensor counts = at::bincount(dataset.train.y.index_select(0, shard.validation), {}, 3);
    EXPECT_GE(counts.min().item<int64_t>(), 7);
    EXPECT_TRUE(at::equal(shard.validation, partition->shard(client).validation)) << "the same every time";
  }
}

TEST(Validation, LeavesSomethingToTrainOn) {
  DataOptions options;
  options.clients = 10;
  options.validation = 0.99;
  const auto partition = make_partition(options, three_classes(20, 30), 1);
  for (int64_t client = 0; client < 10; ++client) EXPECT_EQ(partition->shard(client).size(), 1);
  options.partition = "resample";
  options.records_per_client = 10;
  EXPECT_EQ(make_partition(options, three_classes(60, 30), 1)->shard(3).size(), 1);
}

}  // namespace
}  // namespace sotto::data
