#include "data/partition/dealt.h"

#include "base/error.h"
#include "data/partition/test_shards.h"

#include <ATen/ATen.h>

#include <algorithm>

namespace sotto::data::partitioning {
namespace {

// Lists of rows, one after the other in one tensor; a list is a view of it.
class RowLists {
 public:
  explicit RowLists(const std::vector<std::vector<int64_t>>& lists) {
    begin_.reserve(lists.size() + 1);
    begin_.push_back(0);
    for (const auto& list : lists) begin_.push_back(begin_.back() + static_cast<int64_t>(list.size()));
    rows_ = at::empty({begin_.back()}, at::kLong);
    auto* out = rows_.data_ptr<int64_t>();
    for (const auto& list : lists) {
      std::sort(out, std::copy(list.begin(), list.end(), out));
      out += list.size();
    }
  }

  at::Tensor list(int64_t index) const {
    const int64_t begin = begin_[static_cast<size_t>(index)];
    return rows_.narrow(0, begin, begin_[static_cast<size_t>(index) + 1] - begin);
  }

 private:
  std::vector<int64_t> begin_;
  at::Tensor rows_;
};

class DealtPartition : public Partition {
 public:
  DealtPartition(const std::vector<std::vector<int64_t>>& train, const std::vector<std::vector<int64_t>>& test,
                 bool test_in_train, std::vector<int64_t> domains)
      : train_(train), test_(test), test_in_train_(test_in_train), domains_(std::move(domains)) {}

  int64_t clients() const override { return static_cast<int64_t>(domains_.size()); }

  Shard shard(int64_t client) const override {
    SOTTO_INVARIANT(client >= 0 && client < clients());
    return {train_.list(client), test_.list(client), test_in_train_, domains_[static_cast<size_t>(client)]};
  }

 private:
  const RowLists train_;
  const RowLists test_;
  const bool test_in_train_;
  const std::vector<int64_t> domains_;
};

int64_t only_domain(const Labels& labels, const std::vector<int64_t>& rows) {
  if (rows.empty()) return -1;
  const auto domain_of = [&](int64_t row) { return labels.domain[static_cast<size_t>(row)]; };
  const int64_t first = domain_of(rows.front());
  return std::all_of(rows.begin(), rows.end(), [&](int64_t row) { return domain_of(row) == first; }) ? first : -1;
}

}  // namespace

std::unique_ptr<Partition> make_dealt(const Labels& train, const Labels& test, const Labels& strata,
                                      std::vector<std::vector<int64_t>> dealt, const ClientSplit& split,
                                      uint64_t seed) {
  std::vector<int64_t> domains;
  for (const auto& rows : dealt) domains.push_back(only_domain(train, rows));
  const bool has_test = test.size() > 0;
  auto test_rows =
      has_test ? deal_test_rows(train, dealt, test, seed) : std::vector<std::vector<int64_t>>(dealt.size());
  for (size_t client = 0; client < dealt.size(); ++client) {
    auto& rows = dealt[client];
    RandomStream stream(seed, "partition-split", 0, client);
    std::stable_sort(rows.begin(), rows.end(), [&](int64_t a, int64_t b) { return strata.cell(a) < strata.cell(b); });
    const int64_t train_size = split.train_size(static_cast<int64_t>(rows.size()));
    if (!has_test) test_rows[client] = take_spread(rows, split.test_size(static_cast<int64_t>(rows.size())), stream);
    rows = take_spread(rows, train_size, stream);
  }
  return std::make_unique<DealtPartition>(dealt, test_rows, !has_test, std::move(domains));
}

}  // namespace sotto::data::partitioning
