// Who holds which records.
//
// A partition deals the records of a dataset to clients. It is a pure function of (options, dataset, seed): shards are
// computed, not stored, where the rule allows it, so that 100,000 registered clients cost nothing until they take part.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "config/run_spec.h"
#include "data/dataset.h"

namespace sotto::data {

// One client's records, as rows of the dataset's splits. Where the dataset has no test split, `test` also indexes
// dataset.train and `test_in_train` is set; the two never overlap.
struct Shard {
  at::Tensor train;  // int64 [n]
  at::Tensor test;   // int64 [m]
  bool test_in_train = false;
  int64_t domain = -1;  // the client's domain if it has exactly one, else -1

  int64_t size() const { return train.size(0); }
};

class Partition {
 public:
  virtual ~Partition() = default;
  virtual int64_t clients() const = 0;
  // Deterministic, thread-safe.
  virtual Shard shard(int64_t client) const = 0;
};

// Throws a UserError for impossible requests: more clients than records, more classes per client than classes, a client that
// would stay below min_records, a domain partition of a one-domain dataset.
std::unique_ptr<Partition> make_partition(const config::DataOptions& options, const Dataset& dataset, uint64_t seed);

// The names make_partition knows.
std::vector<std::string> partition_names();

// Training records per client (row) and class (column), of at most `max_clients` clients.
at::Tensor class_counts(const Partition& partition, const Dataset& dataset, int64_t max_clients);

}  // namespace sotto::data
