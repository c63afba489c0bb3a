#include "data/partition/client_split.h"

#include "base/error.h"

#include <algorithm>
#include <cmath>
#include <ranges>

namespace sotto::data::partitioning {

int64_t ClientSplit::test_size(int64_t records) const {
  if (test_fraction == 0.0 || records < 2) return 0;
  return std::clamp<int64_t>(std::llround(static_cast<double>(records) * test_fraction), 1, records - 1);
}

int64_t ClientSplit::train_size(int64_t records) const {
  const int64_t left = records - test_size(records);
  if (left == 0) return 0;
  return std::clamp<int64_t>(std::llround(static_cast<double>(left) * train_fraction), 1, left);
}

int64_t ClientSplit::records_for(int64_t train_records) const {
  constexpr int64_t kMoreThanAnyDataset = int64_t{1} << 50;
  int64_t enough = std::max<int64_t>(train_records, 1);
  while (train_size(enough) < train_records && enough < kMoreThanAnyDataset) enough *= 2;
  const auto candidates = std::views::iota(train_records, enough + 1);
  const auto first = std::ranges::partition_point(candidates, [&](int64_t n) { return train_size(n) < train_records; });
  return first == candidates.end() ? enough : *first;
}

std::vector<int64_t> take_spread(std::vector<int64_t>& rows, int64_t count, RandomStream& stream) {
  const auto size = static_cast<int64_t>(rows.size());
  SOTTO_INVARIANT(count <= size);
  if (count == 0) return {};
  const auto start = static_cast<int64_t>(stream.below(static_cast<uint64_t>(size)));
  std::vector<int64_t> taken;
  std::vector<int64_t> left;
  for (int64_t i = 0; i < size; ++i) {
    const int64_t next = (static_cast<int64_t>(taken.size()) * size + start) / count;
    (i == next ? taken : left).push_back(rows[static_cast<size_t>(i)]);
  }
  rows = std::move(left);
  return taken;
}

}  // namespace sotto::data::partitioning
