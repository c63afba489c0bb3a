// Who holds which records.
//
// A partition deals the records of a dataset to clients. It is a pure function of (options, dataset, seed): shards are
// computed, not stored, where the rule allows it, so that 100,000 registered clients cost nothing until they take part.
#pragma once

#include "data/dataset.h"
#include "data/options.h"

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace sotto::data {

// One client's records, as rows of the dataset's splits, ascending. Where the dataset has no test split, `test` also
// indexes dataset.train and `test_in_train` is set; the two never overlap. The tensors may be views of the partition:
// not to be written to.
struct Shard {
  at::Tensor train;  // int64 [n]
  at::Tensor test;   // int64 [m]; may be empty
  bool test_in_train = false;
  int64_t domain = -1;         // the client's domain if it has exactly one, else -1
  at::Tensor validation = {};  // int64, rows of dataset.train to choose settings by; undefined: there are none

  int64_t size() const { return train.size(0); }
};

// What a client's records are spread over when some are held out or set apart.
enum class Strata {
  kClasses,  // classes and domains: which records train depends on everybody's labels
  kNone,     // nothing: who is held out depends on places and the seed alone, as a proof about one record needs it
};

class Partition {
 public:
  virtual ~Partition() = default;
  virtual int64_t clients() const = 0;
  // Deterministic, thread-safe.
  virtual Shard shard(int64_t client) const = 0;
  // Whether all clients are known to hold equally many records.
  virtual bool all_equal() const { return false; }
};

// The rules, by options.partition:
//
//   iid             equal sizes, labels at random
//   dirichlet       label skew: each class is dealt by Dirichlet(alpha) over the clients
//   pathological    classes_per_client classes each, without overlap as far as the classes allow
//   domain          client i holds domain i mod domains
//   quantity        labels at random, sizes by Dirichlet(alpha)
//   resample        records_per_client distinct records drawn anew for each client: clients overlap, nothing is stored
//   private-label   iid, but the last client lacks class private_label
//   distribution-1  equal sizes; all but the last hold classes_per_client classes, the private one among them; the
//                   last holds one fewer, without it
//   distribution-2  as dirichlet, but the last client gets nothing of the private class
//
// Except under resample, a training record goes to one client at most. The test split is dealt class by class and
// domain by domain in proportion to the clients' training records, so that a client is tested on the mixture it trains
// on. Without a test split, each client's test_fraction is held out, stratified likewise; then train_fraction of the
// rest is kept. Under resample a test shard is max(1, records_per_client / 6) records drawn from the test split, or
// from test_fraction of the training split that nobody trains on. A client of two or more records has a test shard
// unless the test records run out (or test_fraction is 0).
//
// With options.validation that share of a client's training records is set apart, spread over its classes: in
// `validation`, no longer in `train`.
//
// dirichlet, quantity and distribution-2 take records from the largest clients for those below min_records.
//
// Throws a UserError for impossible requests: more clients than records, more classes per client than classes, a client
// that would stay below min_records, a domain partition of a one-domain dataset, labels out of range.
std::unique_ptr<Partition> make_partition(const DataOptions& options, const Dataset& dataset, uint64_t seed,
                                          Strata strata = Strata::kClasses);

// One of the rules above.
struct PartitionEntry {
  std::string name;
  std::string what;               // one line for people
  std::vector<std::string> keys;  // of [data], besides those that every partition has

  bool has(const std::string& key) const { return std::find(keys.begin(), keys.end(), key) != keys.end(); }
};
const std::vector<PartitionEntry>& partition_catalogue();
// A UserError for an unknown name.
const PartitionEntry& find_partition(const std::string& name);
std::vector<std::string> partition_names();

// Training records per client (row) and class (column), of the first `max_clients` clients. int64.
at::Tensor class_counts(const Partition& partition, const Dataset& dataset, int64_t max_clients);

}  // namespace sotto::data
