#include "data/partition.h"

#include "base/error.h"
#include "base/text.h"
#include "data/partition/client_split.h"
#include "data/partition/dealt.h"
#include "data/partition/resample.h"
#include "data/partition/rules.h"
#include "data/partition/validation.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <utility>

namespace sotto::data {
namespace {

using partitioning::ClientSplit;
using partitioning::Labels;

constexpr int64_t kMaxClients = 1'000'000'000;

struct Rule {
  PartitionEntry entry;
  std::vector<partitioning::Group> (*groups)(const partitioning::Request&);  // null: shards are drawn, not dealt
};

const std::vector<Rule>& rules() {
  static const std::vector<Rule> all = {
      {{"iid", "equal sizes, labels at random", {}}, partitioning::iid},
      {{"dirichlet", "label skew: each class is dealt by Dirichlet(alpha) over the clients", {"alpha"}},
       partitioning::dirichlet},
      {{"pathological", "classes_per_client classes each, without overlap as far as possible", {"classes_per_client"}},
       partitioning::pathological},
      {{"domain", "client i holds domain i mod domains", {}}, partitioning::by_domain},
      {{"quantity", "labels at random, sizes by Dirichlet(alpha)", {"alpha"}}, partitioning::quantity},
      {{"private-label", "iid, but the last client lacks the class private_label", {"private_label"}},
       partitioning::private_label},
      {{"distribution-1",
        "LaDP-FL's Distribution I: a few classes each, the private one with everybody but the last client",
        {"classes_per_client", "private_label"}},
       partitioning::distribution_1},
      {{"distribution-2",
        "LaDP-FL's Distribution II: as dirichlet, but the last client gets nothing of the private class",
        {"alpha", "private_label"}},
       partitioning::distribution_2},
      {{"resample",
        "records_per_client records drawn anew for each client: clients overlap, nothing is stored",
        {"records_per_client"}},
       nullptr},
  };
  return all;
}

void check_options(const DataOptions& options) {
  if (options.clients < 1 || options.clients > kMaxClients) {
    fail_user("data.clients is {}: it must be 1 … {}", options.clients, kMaxClients);
  }
  if (!(options.alpha > 0.0) || !std::isfinite(options.alpha)) {
    fail_user("data.alpha is {}: it must be a positive number", options.alpha);
  }
  if (!(options.train_fraction > 0.0 && options.train_fraction <= 1.0)) {
    fail_user("data.train_fraction is {}: it must be above 0 and at most 1", options.train_fraction);
  }
  if (!(options.test_fraction >= 0.0 && options.test_fraction < 1.0)) {
    fail_user("data.test_fraction is {}: it must be at least 0 and below 1", options.test_fraction);
  }
  if (options.min_records < 0) fail_user("data.min_records is {}: it must not be negative", options.min_records);
}

const Rule& find_rule(const std::string& name) {
  const auto rule =
      std::find_if(rules().begin(), rules().end(), [&](const Rule& candidate) { return candidate.entry.name == name; });
  if (rule == rules().end()) {
    const auto names = partition_names();
    fail_user("data.partition '{}' is unknown{}: choose one of {}", name, did_you_mean(name, names), join(names, ", "));
  }
  return *rule;
}

std::unique_ptr<Partition> deal_by_rule(const Rule& rule, const DataOptions& options, const Dataset& dataset,
                                        const Labels& train, const Labels& strata, const ClientSplit& split,
                                        uint64_t seed) {
  const int64_t needed = split.records_for(options.min_records);
  if (std::max<int64_t>(needed, 1) > train.size() / options.clients) {
    fail_user(
        "{} clients need at least {} records each, but dataset '{}' has {} in all: lower data.clients or "
        "data.min_records",
        options.clients, std::max<int64_t>(needed, 1), dataset.name, train.size());
  }
  auto groups = rule.groups({options, dataset, train, seed, needed});
  return partitioning::make_dealt(train, partitioning::read_labels(dataset, dataset.test, "test"), strata,
                                  partitioning::deal(std::move(groups), options.clients, seed), split, seed);
}

Labels all_alike(Labels labels) {
  std::fill(labels.y.begin(), labels.y.end(), 0);
  std::fill(labels.domain.begin(), labels.domain.end(), 0);
  return labels;
}

void check_minimum(const Partition& partition, int64_t min_records, int64_t clients) {
  for (int64_t client = 0; client < clients; ++client) {
    const int64_t size = partition.shard(client).size();
    if (size < min_records) {
      fail_user(
          "client {} would hold {} training records, fewer than data.min_records = {}: lower data.min_records or "
          "data.clients",
          client, size, min_records);
    }
  }
}

}  // namespace

std::unique_ptr<Partition> make_partition(const DataOptions& options, const Dataset& dataset, uint64_t seed,
                                          Strata strata) {
  check_options(options);
  if (dataset.train.size() == 0) fail_user("dataset '{}' has no training records to partition", dataset.name);
  const Labels train = partitioning::read_labels(dataset, dataset.train, "training");
  const Labels spread_over = strata == Strata::kClasses ? train : all_alike(train);
  const ClientSplit split{dataset.test.size() > 0 ? 0.0 : options.test_fraction, options.train_fraction};
  const Rule& rule = find_rule(options.partition);
  const auto validated = [&](std::unique_ptr<Partition> whole) {
    return options.validation > 0 ? partitioning::set_apart(std::move(whole), spread_over, options.validation, seed)
                                  : std::move(whole);
  };
  if (rule.groups == nullptr) {
    auto partition = validated(partitioning::make_resample(options, dataset, spread_over, split, seed));
    check_minimum(*partition, options.min_records, 1);  // all shards have the same size
    return partition;
  }
  auto partition = validated(deal_by_rule(rule, options, dataset, train, spread_over, split, seed));
  check_minimum(*partition, options.min_records, options.clients);
  return partition;
}

const std::vector<PartitionEntry>& partition_catalogue() {
  static const std::vector<PartitionEntry> entries = [] {
    std::vector<PartitionEntry> all;
    for (const Rule& rule : rules()) all.push_back(rule.entry);
    return all;
  }();
  return entries;
}

const PartitionEntry& find_partition(const std::string& name) {
  return find_rule(name).entry;
}

std::vector<std::string> partition_names() {
  std::vector<std::string> names;
  for (const PartitionEntry& entry : partition_catalogue()) names.push_back(entry.name);
  return names;
}

at::Tensor class_counts(const Partition& partition, const Dataset& dataset, int64_t max_clients) {
  const int64_t clients = std::min(partition.clients(), max_clients);
  at::Tensor counts = at::zeros({clients, dataset.classes()}, at::kLong);
  for (int64_t client = 0; client < clients; ++client) {
    const at::Tensor labels = dataset.train.y.index_select(0, partition.shard(client).train);
    counts[client].copy_(at::bincount(labels, {}, dataset.classes()));
  }
  return counts;
}

}  // namespace sotto::data
