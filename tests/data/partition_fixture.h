// Datasets of labels only, and what every partition must satisfy.
#pragma once

#include "data/partition.h"

#include <ATen/ATen.h>

#include <gtest/gtest.h>

#include <numeric>
#include <set>
#include <vector>

namespace sotto::data {

inline Records labels_only(const std::vector<int64_t>& y, const std::vector<int64_t>& domain) {
  Records records;
  records.y = at::tensor(y, at::kLong);
  records.domain = at::tensor(domain, at::kLong);
  return records;
}

// Labels run through the classes; domains change once per run, so that every (class, domain) pair is equally frequent.
inline Records balanced(int64_t size, int64_t classes, int64_t domains) {
  std::vector<int64_t> y(static_cast<size_t>(size));
  std::vector<int64_t> domain(static_cast<size_t>(size));
  for (int64_t i = 0; i < size; ++i) {
    y[static_cast<size_t>(i)] = i % classes;
    domain[static_cast<size_t>(i)] = i / classes % domains;
  }
  return labels_only(y, domain);
}

inline Dataset labelled(int64_t train, int64_t test, int64_t classes = 10, int64_t domains = 1) {
  Dataset dataset;
  dataset.name = "labels";
  for (int64_t c = 0; c < classes; ++c) dataset.class_names.push_back("class-" + std::to_string(c));
  for (int64_t d = 0; d < domains; ++d) dataset.domain_names.push_back("domain-" + std::to_string(d));
  dataset.train = balanced(train, classes, domains);
  if (test > 0) dataset.test = balanced(test, classes, domains);
  return dataset;
}

inline data::DataOptions options_for(const std::string& partition, int64_t clients) {
  data::DataOptions options;
  options.partition = partition;
  options.clients = clients;
  return options;
}

inline std::vector<int64_t> to_vector(const at::Tensor& rows) {
  return {rows.data_ptr<int64_t>(), rows.data_ptr<int64_t>() + rows.numel()};
}

inline std::vector<int64_t> sizes_of(const Partition& partition) {
  std::vector<int64_t> sizes;
  for (int64_t i = 0; i < partition.clients(); ++i) sizes.push_back(partition.shard(i).size());
  return sizes;
}

inline int64_t sum(const std::vector<int64_t>& values) {
  return std::accumulate(values.begin(), values.end(), int64_t{0});
}

inline std::set<int64_t> classes_of(const Dataset& dataset, const Shard& shard) {
  const auto labels = to_vector(dataset.train.y.index_select(0, shard.train));
  return {labels.begin(), labels.end()};
}

inline at::Tensor label_counts(const Records& records, const at::Tensor& rows, int64_t classes) {
  return at::bincount(records.y.index_select(0, rows), {}, classes);
}

inline bool same_shards(const Partition& a, const Partition& b) {
  if (a.clients() != b.clients()) return false;
  for (int64_t i = 0; i < a.clients(); ++i) {
    const Shard x = a.shard(i);
    const Shard y = b.shard(i);
    if (!at::equal(x.train, y.train) || !at::equal(x.test, y.test) || x.domain != y.domain) return false;
  }
  return true;
}

}  // namespace sotto::data
