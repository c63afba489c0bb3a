#include "data/partition/validation.h"

#include "data/partition/client_split.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace sotto::data::partitioning {
namespace {

at::Tensor sorted_rows(std::vector<int64_t> rows) {
  std::sort(rows.begin(), rows.end());
  return at::tensor(rows, at::kLong);
}

class WithValidation : public Partition {
 public:
  WithValidation(std::unique_ptr<Partition> partition, Labels train, double share, uint64_t seed)
      : partition_(std::move(partition)), train_(std::move(train)), split_{.test_fraction = share}, seed_(seed) {}

  int64_t clients() const override { return partition_->clients(); }
  bool all_equal() const override { return partition_->all_equal(); }

  Shard shard(int64_t client) const override {
    Shard shard = partition_->shard(client);
    const auto* first = shard.train.data_ptr<int64_t>();
    std::vector<int64_t> rows(first, first + shard.size());
    std::stable_sort(rows.begin(), rows.end(), [&](int64_t a, int64_t b) { return train_.cell(a) < train_.cell(b); });
    RandomStream stream(seed_, "validation-split", 0, static_cast<uint64_t>(client));
    shard.validation = sorted_rows(take_spread(rows, split_.test_size(shard.size()), stream));
    shard.train = sorted_rows(std::move(rows));
    return shard;
  }

 private:
  const std::unique_ptr<Partition> partition_;
  const Labels train_;
  const ClientSplit split_;
  const uint64_t seed_;
};

}  // namespace

std::unique_ptr<Partition> set_apart(std::unique_ptr<Partition> partition, Labels train, double share, uint64_t seed) {
  return std::make_unique<WithValidation>(std::move(partition), std::move(train), share, seed);
}

}  // namespace sotto::data::partitioning
