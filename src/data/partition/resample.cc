#include "data/partition/resample.h"

#include "base/error.h"

#include <ATen/ATen.h>

#include <algorithm>

namespace sotto::data::partitioning {
namespace {

constexpr int64_t kTrainPerTest = 6;

// The rows that training or test records are drawn from: 0 … size-1, or those listed.
struct Pool {
  int64_t size = 0;
  std::vector<int64_t> rows;

  at::Tensor draw(RandomStream stream, int64_t count) const {
    auto drawn = stream.sample_without_replacement(size, count);
    if (!rows.empty()) {
      std::transform(drawn.begin(), drawn.end(), drawn.begin(),
                     [&](int64_t i) { return rows[static_cast<size_t>(i)]; });
    }
    return at::tensor(drawn, at::kLong);
  }
};

class ResamplePartition : public Partition {
 public:
  ResamplePartition(const DataOptions& options, const Dataset& dataset, Pool train, Pool test, bool test_in_train,
                    const ClientSplit& split, uint64_t seed)
      : clients_(options.clients),
        seed_(seed),
        train_(std::move(train)),
        test_(std::move(test)),
        test_in_train_(test_in_train),
        train_size_(split.train_size(options.records_per_client)),
        test_size_(std::min(test_.size, std::max<int64_t>(options.records_per_client / kTrainPerTest, 1))),
        domain_(dataset.domains() > 1 ? dataset.train.domain : at::Tensor()) {}

  int64_t clients() const override { return clients_; }

  bool all_equal() const override { return true; }
  Shard shard(int64_t client) const override {
    SOTTO_INVARIANT(client >= 0 && client < clients_);
    const auto key = static_cast<uint64_t>(client);
    Shard shard;
    shard.train = train_.draw(RandomStream(seed_, "resample", 0, key), train_size_);
    shard.test = test_.draw(RandomStream(seed_, "resample-test", 0, key), test_size_);
    shard.test_in_train = test_in_train_;
    shard.domain = only_domain(shard.train);
    return shard;
  }

 private:
  int64_t only_domain(const at::Tensor& rows) const {
    if (!domain_.defined()) return 0;
    const at::Tensor domains = domain_.index_select(0, rows);
    const int64_t first = domains[0].item<int64_t>();
    return (domains == first).all().item<bool>() ? first : -1;
  }

  const int64_t clients_;
  const uint64_t seed_;
  const Pool train_;
  const Pool test_;
  const bool test_in_train_;
  const int64_t train_size_;
  const int64_t test_size_;
  const at::Tensor domain_;  // of training rows; undefined if there is only one
};

}  // namespace

std::unique_ptr<Partition> make_resample(const DataOptions& options, const Dataset& dataset, const Labels& train,
                                         const ClientSplit& split, uint64_t seed) {
  if (options.records_per_client < 1) {
    fail_user("data.records_per_client is {}: it must be at least 1", options.records_per_client);
  }
  const bool has_test = dataset.test.size() > 0;
  Pool train_pool{train.size(), {}};
  Pool test_pool{dataset.test.size(), {}};
  if (!has_test) {
    // One held-out pool for everybody: what one client is tested on, no other client trains on.
    RandomStream stream(seed, "resample-holdout");
    train_pool.rows = stream.permutation(train.size());
    std::stable_sort(train_pool.rows.begin(), train_pool.rows.end(),
                     [&](int64_t a, int64_t b) { return train.cell(a) < train.cell(b); });
    test_pool.rows = take_spread(train_pool.rows, split.test_size(train.size()), stream);
    std::sort(train_pool.rows.begin(), train_pool.rows.end());
    std::sort(test_pool.rows.begin(), test_pool.rows.end());
    train_pool.size = static_cast<int64_t>(train_pool.rows.size());
    test_pool.size = static_cast<int64_t>(test_pool.rows.size());
  }
  if (options.records_per_client > train_pool.size) {
    fail_user("data.records_per_client is {}, but dataset '{}' has {} records to draw from: lower it",
              options.records_per_client, dataset.name, train_pool.size);
  }
  const ClientSplit draw{0.0, split.train_fraction};
  return std::make_unique<ResamplePartition>(options, dataset, std::move(train_pool), std::move(test_pool), !has_test,
                                             draw, seed);
}

}  // namespace sotto::data::partitioning
