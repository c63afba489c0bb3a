// What is particular to each rule.
#include "base/error.h"
#include "base/random.h"
#include "partition_fixture.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>

namespace sotto::data {
namespace {

using ::testing::Each;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

auto refuses(const std::string& words) {
  return ThrowsMessage<UserError>(HasSubstr(words));
}

TEST(Iid, SizesDifferByAtMostOneAndEverythingIsUsed) {
  const auto sizes = sizes_of(*make_partition(options_for("iid", 7), labelled(1000, 100), 1));
  EXPECT_EQ(sum(sizes), 1000);
  EXPECT_LE(*std::max_element(sizes.begin(), sizes.end()) - *std::min_element(sizes.begin(), sizes.end()), 1);
}

TEST(Iid, TestShardsAreOfEqualSize) {
  const auto partition = make_partition(options_for("iid", 20), labelled(6000, 1000), 1);
  for (int64_t i = 0; i < 20; ++i) {
    EXPECT_NEAR(static_cast<double>(partition->shard(i).test.size(0)), 50.0, 2.0);
  }
}

double label_skew(double alpha) {
  const Dataset dataset = labelled(10'000, 1000);
  auto options = options_for("dirichlet", 20);
  options.alpha = alpha;
  const at::Tensor counts = class_counts(*make_partition(options, dataset, 1), dataset, 20).to(at::kDouble);
  return std::get<0>((counts / counts.sum(0, true)).max(0)).mean().item<double>();
}

TEST(Dirichlet, SmallerAlphaMeansMoreSkew) {
  EXPECT_GT(label_skew(0.05), 0.5);  // one client has most of a class
  EXPECT_LT(label_skew(0.5), 0.5);
  EXPECT_LT(label_skew(1000.0), 0.07);  // nearly 1/20 each
}

TEST(Dirichlet, UsesEveryRecordAndRaisesTheSmallest) {
  auto options = options_for("dirichlet", 50);
  options.alpha = 0.01;
  options.min_records = 100;
  const auto sizes = sizes_of(*make_partition(options, labelled(6000, 1000), 1));
  EXPECT_EQ(sum(sizes), 6000);
  EXPECT_THAT(sizes, Each(Ge(100)));
}

TEST(Dirichlet, MinimumMayUseUpTheDataset) {
  auto options = options_for("dirichlet", 50);
  options.alpha = 0.01;
  options.min_records = 20;
  EXPECT_THAT(sizes_of(*make_partition(options, labelled(1000, 100), 1)), Each(20));
  options.min_records = 21;
  EXPECT_THAT([&] { make_partition(options, labelled(1000, 100), 1); },
              refuses("50 clients need at least 21 records each"));
}

TEST(Dirichlet, MinimumDoesNotDisturbClientsThatHaveEnough) {
  const Dataset dataset = labelled(5000, 500);
  auto options = options_for("dirichlet", 20);
  const at::Tensor before = class_counts(*make_partition(options, dataset, 2), dataset, 20);
  options.min_records = 200;
  const at::Tensor after = class_counts(*make_partition(options, dataset, 2), dataset, 20);
  ASSERT_LT(before.sum(1).min().item<int64_t>(), 200) << "nothing to raise: the test needs another seed";
  const int64_t moved = (after - before).clamp(0).sum().item<int64_t>();
  EXPECT_EQ(moved, (200 - before.sum(1)).clamp(0).sum().item<int64_t>());
}

TEST(Quantity, SizesVaryAndLabelsDoNot) {
  const Dataset dataset = labelled(20'000, 1000);
  auto options = options_for("quantity", 10);
  options.alpha = 0.5;
  options.min_records = 50;
  const auto partition = make_partition(options, dataset, 1);
  const auto sizes = sizes_of(*partition);
  EXPECT_EQ(sum(sizes), 20'000);
  EXPECT_THAT(sizes, Each(Ge(50)));
  const auto largest = std::max_element(sizes.begin(), sizes.end());
  EXPECT_GT(*largest, 3 * *std::min_element(sizes.begin(), sizes.end()));
  const at::Tensor counts = label_counts(dataset.train, partition->shard(largest - sizes.begin()).train, 10);
  const double expected = static_cast<double>(*largest) / 10.0;
  EXPECT_LE((counts - expected).abs().max().item<double>(), 5.0 * std::sqrt(expected));
}

TEST(Pathological, EnoughClassesMeansNoOverlap) {
  const Dataset dataset = labelled(1000, 100, 10);
  auto options = options_for("pathological", 5);
  options.classes_per_client = 2;
  const auto partition = make_partition(options, dataset, 1);
  std::set<int64_t> seen;
  for (int64_t i = 0; i < 5; ++i) {
    const auto classes = classes_of(dataset, partition->shard(i));
    EXPECT_EQ(classes.size(), 2U);
    for (const int64_t label : classes) EXPECT_TRUE(seen.insert(label).second) << "class " << label << " held twice";
  }
  EXPECT_EQ(seen.size(), 10U);
  EXPECT_EQ(sum(sizes_of(*partition)), 1000);
}

TEST(Pathological, ClassesLeftOverAreNotUsed) {
  auto options = options_for("pathological", 3);
  options.classes_per_client = 3;
  EXPECT_EQ(sum(sizes_of(*make_partition(options, labelled(1000, 100, 10), 1))), 900);
}

TEST(Pathological, OtherwiseClassesAreSharedEvenly) {
  const Dataset dataset = labelled(10'000, 1000, 10);
  for (const int64_t each : {1, 2, 3, 7, 10}) {
    auto options = options_for("pathological", 33);
    options.classes_per_client = each;
    const at::Tensor counts = class_counts(*make_partition(options, dataset, 5), dataset, 33);
    EXPECT_TRUE(at::equal((counts > 0).sum(1), at::full({33}, each, at::kLong))) << each << " classes each";
    const at::Tensor holders = (counts > 0).sum(0);
    EXPECT_LE((holders.max() - holders.min()).item<int64_t>(), 1);
    EXPECT_EQ(counts.sum().item<int64_t>(), 10'000);
  }
}

TEST(Pathological, RefusesWhatTheClassesDoNotAllow) {
  for (const int64_t each : {0, -1, 11}) {
    auto options = options_for("pathological", 4);
    options.classes_per_client = each;
    EXPECT_THAT([&] { make_partition(options, labelled(1000, 100, 10), 1); }, refuses("data.classes_per_client"));
  }
  auto options = options_for("pathological", 60);
  options.classes_per_client = 10;
  EXPECT_THAT([&] { make_partition(options, labelled(100, 10, 10), 1); },
              refuses("10 training records for the 60 clients"));
}

TEST(Pathological, DealsOnlyClassesThatHaveRecords) {
  Dataset dataset = labelled(1000, 100, 10);
  dataset.train.y.masked_fill_(dataset.train.y == 3, 4);
  auto options = options_for("pathological", 9);
  options.classes_per_client = 1;
  EXPECT_THAT(sizes_of(*make_partition(options, dataset, 1)), Each(Ge(100)));
  options.classes_per_client = 10;
  EXPECT_THAT([&] { make_partition(options, dataset, 1); }, refuses("9 classes"));
}

TEST(ByDomain, EachClientHoldsOneDomainInTrainingAndTest) {
  const Dataset dataset = labelled(1200, 240, 10, 3);
  const auto partition = make_partition(options_for("domain", 7), dataset, 1);
  for (int64_t i = 0; i < 7; ++i) {
    const Shard shard = partition->shard(i);
    EXPECT_EQ(shard.domain, i % 3);
    EXPECT_TRUE((dataset.train.domain.index_select(0, shard.train) == i % 3).all().item<bool>());
    EXPECT_TRUE((dataset.test.domain.index_select(0, shard.test) == i % 3).all().item<bool>());
  }
  EXPECT_THAT(sizes_of(*partition), ::testing::ElementsAre(134, 200, 200, 133, 200, 200, 133));
}

TEST(ByDomain, RefusesOneDomainFewClientsAndEmptyDomains) {
  EXPECT_THAT([] { make_partition(options_for("domain", 4), labelled(100, 10), 1); }, refuses("data.domains"));
  EXPECT_THAT([] { make_partition(options_for("domain", 2), labelled(900, 90, 10, 3), 1); }, refuses("data.clients"));
  Dataset dataset = labelled(900, 90, 10, 3);
  dataset.train.domain.masked_fill_(dataset.train.domain == 1, 0);
  EXPECT_THAT([&] { make_partition(options_for("domain", 3), dataset, 1); }, refuses("client 1 would hold 0"));
}

TEST(Shard, NamesADomainOnlyIfThereIsOne) {
  EXPECT_EQ(make_partition(options_for("iid", 4), labelled(100, 10), 1)->shard(0).domain, 0);
  EXPECT_EQ(make_partition(options_for("iid", 4), labelled(900, 90, 10, 3), 1)->shard(0).domain, -1);
  auto options = options_for("resample", 4);
  options.records_per_client = 50;
  EXPECT_EQ(make_partition(options, labelled(100, 10), 1)->shard(0).domain, 0);
  EXPECT_EQ(make_partition(options, labelled(900, 90, 10, 3), 1)->shard(0).domain, -1);
}

TEST(Resample, DrawsFromTheStreamOfTheClientAlone) {
  const Dataset dataset = labelled(5000, 1000);
  const auto few = make_partition(options_for("resample", 10), dataset, 4);
  const auto many = make_partition(options_for("resample", 1'000'000), dataset, 4);
  for (const int64_t client : {0, 3, 9}) {
    EXPECT_TRUE(at::equal(few->shard(client).train, many->shard(client).train));
    RandomStream stream(4, "resample", 0, static_cast<uint64_t>(client));
    EXPECT_EQ(to_vector(few->shard(client).train), stream.sample_without_replacement(5000, 600));
  }
  EXPECT_EQ(many->clients(), 1'000'000);
  EXPECT_EQ(many->shard(999'999).size(), 600);
  EXPECT_EQ(many->shard(999'999).test.size(0), 100);
  EXPECT_FALSE(at::equal(many->shard(0).train, many->shard(1).train));
}

TEST(Resample, HeldOutPoolHasEveryClass) {
  const Dataset dataset = labelled(1000, 0, 10);
  auto options = options_for("resample", 50);
  options.records_per_client = 300;
  const auto partition = make_partition(options, dataset, 1);
  std::set<int64_t> tested;
  for (int64_t i = 0; i < 50; ++i) {
    const auto rows = to_vector(partition->shard(i).test);
    tested.insert(rows.begin(), rows.end());
  }
  ASSERT_EQ(tested.size(), 200U);
  const at::Tensor rows = at::tensor(std::vector<int64_t>(tested.begin(), tested.end()), at::kLong);
  EXPECT_TRUE(at::equal(label_counts(dataset.train, rows, 10), at::full({10}, 20, at::kLong)));
}

TEST(Resample, RefusesMoreRecordsThanThereAre) {
  auto options = options_for("resample", 3);
  for (const int64_t records : {0, -5, 101}) {
    options.records_per_client = records;
    EXPECT_THAT([&] { make_partition(options, labelled(100, 20), 1); }, refuses("data.records_per_client"));
  }
  options.records_per_client = 100;
  EXPECT_NO_THROW(make_partition(options, labelled(100, 20), 1));
  EXPECT_THAT([&] { make_partition(options, labelled(100, 0), 1); }, refuses("80 records to draw from"));
}

TEST(PrivateLabel, OnlyTheLastClientLacksTheClass) {
  const Dataset dataset = labelled(3000, 500);
  auto options = options_for("private-label", 6);
  options.private_label = 4;
  const auto partition = make_partition(options, dataset, 1);
  for (int64_t i = 0; i < 6; ++i) {
    const Shard shard = partition->shard(i);
    EXPECT_EQ(classes_of(dataset, shard).size(), i == 5 ? 9U : 10U);
    EXPECT_EQ(classes_of(dataset, shard).contains(4), i != 5);
    EXPECT_EQ(label_counts(dataset.test, shard.test, 10)[4].item<int64_t>() > 0, i != 5);
  }
  EXPECT_EQ(sum(sizes_of(*partition)), 3000);
}

TEST(DistributionOne, HasTheLabelsAndSizesOfThePaper) {
  const Dataset dataset = labelled(50'000, 10'000);
  auto options = options_for("distribution-1", 100);
  options.classes_per_client = 4;
  options.private_label = 2;
  const auto partition = make_partition(options, dataset, 1);
  const at::Tensor counts = class_counts(*partition, dataset, 100);
  const at::Tensor held = (counts > 0).sum(1);
  EXPECT_TRUE(at::equal(held.slice(0, 0, 99), at::full({99}, 4, at::kLong)));
  EXPECT_EQ(held[99].item<int64_t>(), 3);
  EXPECT_TRUE((counts.slice(0, 0, 99).select(1, 2) > 0).all().item<bool>());
  EXPECT_EQ(counts[99][2].item<int64_t>(), 0);
  const auto sizes = sizes_of(*partition);
  EXPECT_THAT(sizes, Each(sizes.front()));
  EXPECT_GT(sum(sizes), 45'000);
}

TEST(DistributionOne, RefusesTooFewLabelsOrRecords) {
  auto options = options_for("distribution-1", 5);
  for (const int64_t each : {1, 11}) {
    options.classes_per_client = each;
    EXPECT_THAT([&] { make_partition(options, labelled(1000, 100), 1); }, refuses("allows 2 … 10"));
  }
  options = options_for("distribution-1", 60);
  options.classes_per_client = 4;
  EXPECT_THAT([&] { make_partition(options, labelled(100, 10), 1); }, refuses("use fewer data.clients"));
}

TEST(DistributionTwo, KeepsThePrivateClassFromTheCuriousClientEvenWhenRaising) {
  const Dataset dataset = labelled(5000, 1000);
  auto options = options_for("distribution-2", 100);
  options.alpha = 0.01;
  options.private_label = 7;
  options.min_records = 10;
  for (const uint64_t seed : {1, 2, 3, 4, 5}) {
    const auto partition = make_partition(options, dataset, seed);
    const at::Tensor counts = class_counts(*partition, dataset, 100);
    EXPECT_EQ(counts[99][7].item<int64_t>(), 0);
    EXPECT_EQ(counts.sum().item<int64_t>(), 5000);
    EXPECT_GE(counts.sum(1).min().item<int64_t>(), 10);
    EXPECT_EQ(label_counts(dataset.test, partition->shard(99).test, 10)[7].item<int64_t>(), 0);
  }
}

TEST(DistributionTwo, RefusesAMinimumThatOnlyThePrivateClassCouldMeet) {
  Dataset dataset = labelled(100, 0, 2);
  dataset.train.y.slice(0, 0, 97).fill_(0);
  auto options = options_for("distribution-2", 2);
  options.test_fraction = 0.0;
  options.min_records = 10;
  EXPECT_THAT([&] { make_partition(options, dataset, 1); }, refuses("client 1 would hold"));
}

TEST(PrivateRules, RefuseALabelThatIsNotThere) {
  for (const char* rule : {"private-label", "distribution-1", "distribution-2"}) {
    auto options = options_for(rule, 4);
    for (const int64_t label : {-1, 10}) {
      options.private_label = label;
      EXPECT_THAT([&] { make_partition(options, labelled(1000, 100), 1); }, refuses("data.private_label")) << rule;
    }
    Dataset without = labelled(1000, 100);
    without.train.y.masked_fill_(without.train.y == 3, 4);
    options.private_label = 3;
    EXPECT_THAT([&] { make_partition(options, without, 1); }, refuses("no training records of class 'class-3'"))
        << rule;
    EXPECT_THAT([&] { make_partition(options_for(rule, 1), labelled(1000, 100), 1); }, refuses("curious client"))
        << rule;
  }
}

}  // namespace
}  // namespace sotto::data
