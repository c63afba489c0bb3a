#include "data/partition/test_shards.h"

#include "base/random.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

namespace sotto::data::partitioning {
namespace {

struct Holder {
  size_t client;
  int64_t train_count;
  double quota = 0.0;  // test rows it should get of this cell
  int64_t given = 0;
};

struct Cell {
  std::vector<int64_t> test_rows;
  std::vector<Holder> holders;
  int64_t train_count = 0;  // training rows, dealt or not
  int64_t free = 0;         // test rows to give, not yet given
};

class TestDealer {
 public:
  TestDealer(const Labels& train, const std::vector<std::vector<int64_t>>& train_rows, const Labels& test)
      : cells_(static_cast<size_t>(train.classes * train.domains)), owed_(train_rows.size(), 0.0) {
    for (int64_t row = 0; row < test.size(); ++row) cell_of(test, row).test_rows.push_back(row);
    for (int64_t row = 0; row < train.size(); ++row) ++cell_of(train, row).train_count;
    std::vector<int64_t> dealt(cells_.size(), 0);
    for (const auto& rows : train_rows) {
      for (const int64_t row : rows) ++dealt[static_cast<size_t>(train.cell(row))];
    }
    for (size_t c = 0; c < cells_.size(); ++c) cells_[c].free = in_proportion(dealt[c], cells_[c]);
    for (size_t client = 0; client < train_rows.size(); ++client) enlist(client, train, train_rows[client]);
  }

  std::vector<std::vector<int64_t>> deal(uint64_t seed) {
    for (Cell& cell : cells_) share(cell);
    std::vector<std::vector<int64_t>> shards(owed_.size());
    for (size_t c = 0; c < cells_.size(); ++c) {
      Cell& cell = cells_[c];
      RandomStream(seed, "partition-test-rows", 0, c).shuffle(cell.test_rows);
      auto next = cell.test_rows.begin();
      for (const Holder& holder : cell.holders) {
        shards[holder.client].insert(shards[holder.client].end(), next, next + holder.given);
        next += holder.given;
      }
    }
    return shards;
  }

 private:
  Cell& cell_of(const Labels& labels, int64_t row) { return cells_[static_cast<size_t>(labels.cell(row))]; }

  // Where a rule leaves training rows out, the same share of test rows stays behind: otherwise such classes would weigh
  // more in the test.
  static int64_t in_proportion(int64_t dealt, const Cell& cell) {
    const auto test_count = static_cast<int64_t>(cell.test_rows.size());
    return cell.train_count == 0 ? 0 : (test_count * dealt + cell.train_count - 1) / cell.train_count;
  }

  void enlist(size_t client, const Labels& train, const std::vector<int64_t>& rows) {
    std::map<int64_t, int64_t> counts;
    for (const int64_t row : rows) ++counts[train.cell(row)];
    Cell* most_held = nullptr;
    for (const auto& [index, count] : counts) {
      Cell& cell = cells_[static_cast<size_t>(index)];
      cell.holders.push_back({client, count});
      const bool more = most_held == nullptr || count > most_held->holders.back().train_count;
      if (cell.free > 0 && more) most_held = &cell;
    }
    if (rows.size() < 2 || most_held == nullptr) return;
    most_held->holders.back().given = 1;
    --most_held->free;
  }

  // The rows that are not reserved go by quota; what rounding leaves goes to those whom rounding has cost most so far,
  // so that a client's total comes out right although its quotas are fractions.
  void share(Cell& cell) {
    if (cell.holders.empty() || cell.test_rows.empty()) return;
    const double rate = static_cast<double>(cell.test_rows.size()) / static_cast<double>(cell.train_count);
    for (Holder& holder : cell.holders) holder.quota = static_cast<double>(holder.train_count) * rate;
    std::vector<double> due(cell.holders.size());
    std::transform(cell.holders.begin(), cell.holders.end(), due.begin(), [](const Holder& holder) {
      return std::max(0.0, holder.quota - static_cast<double>(holder.given));
    });
    const double total_due = std::accumulate(due.begin(), due.end(), 0.0);
    const double scale = total_due > 0.0 ? static_cast<double>(cell.free) / total_due : 0.0;
    for (size_t i = 0; i < due.size(); ++i) {
      const auto whole = std::min(cell.free, static_cast<int64_t>(std::floor(due[i] * scale)));
      cell.holders[i].given += whole;
      cell.free -= whole;
    }
    for (const Holder& holder : cell.holders) owed_[holder.client] += holder.quota - static_cast<double>(holder.given);
    std::vector<Holder*> order;
    for (Holder& holder : cell.holders) order.push_back(&holder);
    std::stable_sort(order.begin(), order.end(),
                     [&](const Holder* a, const Holder* b) { return owed_[a->client] > owed_[b->client]; });
    for (size_t i = 0; i < order.size() && cell.free > 0; ++i, --cell.free) {
      ++order[i]->given;
      owed_[order[i]->client] -= 1.0;
    }
  }

  std::vector<Cell> cells_;
  std::vector<double> owed_;  // by client: quotas so far minus rows given so far
};

}  // namespace

std::vector<std::vector<int64_t>> deal_test_rows(const Labels& train,
                                                 const std::vector<std::vector<int64_t>>& train_rows,
                                                 const Labels& test, uint64_t seed) {
  return TestDealer(train, train_rows, test).deal(seed);
}

}  // namespace sotto::data::partitioning
