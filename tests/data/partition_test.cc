// What holds for every rule, and what make_partition refuses.
#include "data/partition.h"

#include "base/error.h"
#include "partition_fixture.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <thread>

namespace sotto::data {
namespace {

using ::testing::HasSubstr;

std::string refusal(const data::DataOptions& options, const Dataset& dataset) {
  try {
    make_partition(options, dataset, 1);
  } catch (const UserError& error) {
    return error.what();
  }
  return "accepted";
}

// Every rule on a dataset it can deal: 10 classes, 2 domains, 8 clients.
class EveryRule : public ::testing::TestWithParam<std::string> {
 protected:
  static data::DataOptions options() {
    auto options = options_for(GetParam(), 8);
    options.classes_per_client = 4;
    options.records_per_client = 90;
    return options;
  }
  static bool shares_records() { return GetParam() == "resample"; }
  static Dataset with_test() { return labelled(2000, 500, 10, 2); }
  static Dataset without_test() { return labelled(2000, 0, 10, 2); }
};

void expect_within(const at::Tensor& rows, int64_t size) {
  ASSERT_EQ(rows.scalar_type(), at::kLong);
  const auto values = to_vector(rows);
  EXPECT_TRUE(std::is_sorted(values.begin(), values.end()));
  EXPECT_EQ(std::adjacent_find(values.begin(), values.end()), values.end()) << "a record twice";
  if (!values.empty()) {
    EXPECT_GE(values.front(), 0);
    EXPECT_LT(values.back(), size);
  }
}

TEST_P(EveryRule, DealsEachRecordAtMostOnce) {
  for (const Dataset& dataset : {with_test(), without_test()}) {
    const auto partition = make_partition(options(), dataset, 1);
    ASSERT_EQ(partition->clients(), 8);
    std::vector<int> train_holders(2000, 0);
    std::vector<int> test_holders(2000, 0);
    for (int64_t i = 0; i < 8; ++i) {
      const Shard shard = partition->shard(i);
      EXPECT_EQ(shard.test_in_train, dataset.test.size() == 0);
      expect_within(shard.train, 2000);
      expect_within(shard.test, shard.test_in_train ? 2000 : 500);
      EXPECT_GE(shard.size(), 1);
      EXPECT_TRUE(shard.test.size(0) >= 1 || shard.size() == 1) << "client " << i;
      for (const int64_t row : to_vector(shard.train)) ++train_holders[static_cast<size_t>(row)];
      for (const int64_t row : to_vector(shard.test)) ++test_holders[static_cast<size_t>(row)];
      if (shard.test_in_train) {
        // What one client is tested on, nobody trains on: records are dealt once, and resample keeps a pool apart.
        for (const int64_t row : to_vector(shard.test)) EXPECT_EQ(train_holders[static_cast<size_t>(row)], 0);
      }
    }
    if (shares_records()) continue;
    EXPECT_LE(*std::max_element(train_holders.begin(), train_holders.end()), 1);
    EXPECT_LE(*std::max_element(test_holders.begin(), test_holders.end()), 1);
  }
}

TEST_P(EveryRule, IsAPureFunctionOfItsArguments) {
  const Dataset dataset = with_test();
  const auto once = make_partition(options(), dataset, 7);
  EXPECT_TRUE(same_shards(*once, *make_partition(options(), dataset, 7)));
  EXPECT_FALSE(same_shards(*once, *make_partition(options(), dataset, 8)));
}

TEST_P(EveryRule, ShardsMayBeAskedForByManyThreads) {
  const Dataset dataset = without_test();
  const auto partition = make_partition(options(), dataset, 3);
  std::vector<Shard> alone;
  for (int64_t i = 0; i < 8; ++i) alone.push_back(partition->shard(i));
  std::atomic<int> different = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int64_t k = 0; k < 200; ++k) {
        const int64_t i = (k + t) % 8;
        const Shard shard = partition->shard(i);
        const Shard& expected = alone[static_cast<size_t>(i)];
        if (!at::equal(shard.train, expected.train) || !at::equal(shard.test, expected.test)) ++different;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(different, 0);
}

TEST_P(EveryRule, KeepsTheAskedShareOfTrainingRecords) {
  const Dataset dataset = with_test();
  auto half = options();
  half.train_fraction = 0.5;
  const auto all = make_partition(options(), dataset, 1);
  const auto kept = make_partition(half, dataset, 1);
  for (int64_t i = 0; i < 8; ++i) {
    const auto expected = std::max<int64_t>(1, std::llround(0.5 * static_cast<double>(all->shard(i).size())));
    EXPECT_NEAR(static_cast<double>(kept->shard(i).size()), static_cast<double>(expected), 1.0) << "client " << i;
    EXPECT_TRUE(at::equal(kept->shard(i).test, all->shard(i).test)) << "client " << i;
  }
}

TEST_P(EveryRule, HoldsOutTheAskedShareForTesting) {
  auto quarter = options();
  quarter.test_fraction = 0.25;
  const auto partition = make_partition(quarter, without_test(), 1);
  for (int64_t i = 0; i < 8; ++i) {
    const Shard shard = partition->shard(i);
    const auto dealt = static_cast<double>(shard.size() + shard.test.size(0));
    const double expected = shares_records() ? 90.0 / 6.0 : 0.25 * dealt;
    EXPECT_NEAR(static_cast<double>(shard.test.size(0)), expected, 1.0);
  }
}

TEST_P(EveryRule, TestShardsHaveTheMixtureOfTheTrainingShards) {
  const Dataset dataset = with_test();
  const auto partition = make_partition(options(), dataset, 1);
  for (int64_t i = 0; i < 8; ++i) {
    if (shares_records()) continue;  // both are uniform samples
    const Shard shard = partition->shard(i);
    const at::Tensor expected = label_counts(dataset.train, shard.train, 10).to(at::kDouble) * (500.0 / 2000.0);
    const at::Tensor actual = label_counts(dataset.test, shard.test, 10).to(at::kDouble);
    // A class is made of two domains, each rounded by less than one record, and one may have been reserved.
    EXPECT_LE((expected - actual).abs().max().item<double>(), 3.0) << "client " << i;
    EXPECT_EQ(actual.masked_select(expected == 0.0).sum().item<double>(), 0.0) << "client " << i;
  }
}

TEST_P(EveryRule, RefusesAMinimumThatCannotBeMet) {
  auto impossible = options();
  impossible.min_records = 300;
  EXPECT_THAT(refusal(impossible, with_test()), HasSubstr("min_records"));
}

INSTANTIATE_TEST_SUITE_P(Partition, EveryRule, ::testing::ValuesIn(partition_names()), [](const auto& param) {
  std::string name = param.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

TEST(Partition, UnknownRuleNamesTheNearest) {
  EXPECT_THAT(refusal(options_for("dirichelt", 4), labelled(100, 20)), HasSubstr("did you mean 'dirichlet'"));
}

TEST(Partition, RefusesImpossibleOptions) {
  const Dataset dataset = labelled(100, 20);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  for (const int64_t clients : {0, -1, 101}) {
    EXPECT_THAT(refusal(options_for("iid", clients), dataset), HasSubstr("data.clients")) << clients;
  }
  for (const double alpha : {0.0, -1.0, nan, infinity}) {
    auto options = options_for("dirichlet", 4);
    options.alpha = alpha;
    EXPECT_THAT(refusal(options, dataset), HasSubstr("data.alpha")) << alpha;
  }
  for (const double fraction : {0.0, -0.5, 1.5, nan, infinity}) {
    auto options = options_for("iid", 4);
    options.train_fraction = fraction;
    EXPECT_THAT(refusal(options, dataset), HasSubstr("data.train_fraction")) << fraction;
  }
  for (const double fraction : {1.0, -0.5, nan, infinity}) {
    auto options = options_for("iid", 4);
    options.test_fraction = fraction;
    EXPECT_THAT(refusal(options, dataset), HasSubstr("data.test_fraction")) << fraction;
  }
  auto options = options_for("iid", 4);
  options.min_records = -1;
  EXPECT_THAT(refusal(options, dataset), HasSubstr("data.min_records"));
  for (const double fraction : {1e-300, 1e-9}) {
    options = options_for("iid", 4);
    options.train_fraction = fraction;
    options.min_records = 2;
    EXPECT_THAT(refusal(options, dataset), HasSubstr("data.min_records")) << fraction;
  }
}

TEST(Partition, RefusesBrokenDatasets) {
  EXPECT_THAT(refusal(options_for("iid", 1), labelled(0, 10)), HasSubstr("no training records"));
  Dataset wrong_label = labelled(100, 20);
  wrong_label.train.y[7] = 10;
  EXPECT_THAT(refusal(options_for("iid", 4), wrong_label), HasSubstr("label of record 7 is 10"));
  Dataset wrong_test = labelled(100, 20);
  wrong_test.test.y[3] = -1;
  EXPECT_THAT(refusal(options_for("iid", 4), wrong_test), HasSubstr("test split: label of record 3 is -1"));
  Dataset wrong_domain = labelled(100, 20);
  wrong_domain.train.domain[9] = 1;
  EXPECT_THAT(refusal(options_for("iid", 4), wrong_domain), HasSubstr("domain of record 9 is 1"));
  Dataset short_domain = labelled(100, 20);
  short_domain.train.domain = at::zeros({50}, at::kLong);
  EXPECT_THAT(refusal(options_for("iid", 4), short_domain), HasSubstr("100 in all"));
}

TEST(Partition, OneRecordClientsAreAllowedAndHaveNoTestRecords) {
  const auto partition = make_partition(options_for("iid", 10), labelled(10, 0), 1);
  EXPECT_THAT(sizes_of(*partition), ::testing::Each(1));
  for (int64_t i = 0; i < 10; ++i) EXPECT_EQ(partition->shard(i).test.size(0), 0);
}

TEST(Partition, ClientsOfTwoRecordsAreTestedOnOne) {
  auto options = options_for("iid", 10);
  options.test_fraction = 0.01;
  const auto held_out = make_partition(options, labelled(20, 0), 1);
  const auto dealt = make_partition(options, labelled(20, 10), 1);
  int64_t tested = 0;
  for (int64_t i = 0; i < 10; ++i) {
    EXPECT_EQ(held_out->shard(i).test.size(0), 1);
    tested += dealt->shard(i).test.size(0);
  }
  EXPECT_GE(tested, 9);
}

TEST(Partition, NothingIsHeldOutIfNothingIsAskedFor) {
  auto options = options_for("iid", 4);
  options.test_fraction = 0.0;
  const auto partition = make_partition(options, labelled(100, 0), 1);
  EXPECT_THAT(sizes_of(*partition), ::testing::Each(25));
  EXPECT_EQ(partition->shard(0).test.size(0), 0);
}

TEST(Partition, MinimumCountsWhatIsLeftForTraining) {
  auto options = options_for("dirichlet", 10);
  options.alpha = 0.05;
  options.min_records = 20;
  options.test_fraction = 0.3;
  options.train_fraction = 0.5;
  const auto partition = make_partition(options, labelled(1000, 0), 1);
  EXPECT_THAT(sizes_of(*partition), ::testing::Each(::testing::Ge(20)));
}

TEST(Partition, HoldOutKeepsTheMixtureOfClasses) {
  const Dataset dataset = labelled(1000, 0);
  auto options = options_for("iid", 2);
  options.test_fraction = 0.2;
  options.train_fraction = 0.5;
  const auto partition = make_partition(options, dataset, 1);
  for (int64_t i = 0; i < 2; ++i) {
    const Shard shard = partition->shard(i);
    const at::Tensor train = label_counts(dataset.train, shard.train, 10).to(at::kDouble);
    const at::Tensor test = label_counts(dataset.train, shard.test, 10).to(at::kDouble);
    EXPECT_LE((train - 2.0 * test).abs().max().item<double>(), 4.0);
  }
}

TEST(Partition, ClassNobodyTrainsOnIsNotTested) {
  Dataset dataset = labelled(100, 100, 10);
  dataset.train.y.masked_fill_(dataset.train.y == 3, 4);
  const auto partition = make_partition(options_for("iid", 4), dataset, 1);
  int64_t tested = 0;
  for (int64_t i = 0; i < 4; ++i) {
    const at::Tensor counts = label_counts(dataset.test, partition->shard(i).test, 10);
    EXPECT_EQ(counts[3].item<int64_t>(), 0);
    tested += counts.sum().item<int64_t>();
  }
  EXPECT_EQ(tested, 90);
}

TEST(ClassCounts, CountsTrainingRecordsOfTheFirstClients) {
  const Dataset dataset = labelled(200, 40);
  const auto partition = make_partition(options_for("dirichlet", 5), dataset, 1);
  const at::Tensor counts = class_counts(*partition, dataset, 3);
  ASSERT_EQ(counts.sizes(), at::IntArrayRef({3, 10}));
  for (int64_t i = 0; i < 3; ++i) {
    EXPECT_TRUE(at::equal(counts[i], label_counts(dataset.train, partition->shard(i).train, 10)));
  }
  EXPECT_TRUE(at::equal(class_counts(*partition, dataset, 100).sum(0), at::full({10}, 20, at::kLong)));
}

}  // namespace
}  // namespace sotto::data
