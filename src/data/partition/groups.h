// How a partition rule says who gets what: groups of training rows, and how many rows of each group every client gets.
#pragma once

#include "base/random.h"

#include <cstdint>
#include <span>
#include <vector>

namespace sotto::data::partitioning {

// Rows that are interchangeable under a rule (all rows, those of a class, those of a domain). counts[i] of them go to
// client i; their sum is at most rows.size(). Clients from counts.size() on may not hold any.
struct Group {
  std::vector<int64_t> rows;
  std::vector<int64_t> counts;
};

// Row numbers by key: result[k] lists the rows whose key is k, ascending. Keys are in [0, count).
std::vector<std::vector<int64_t>> rows_by_key(std::span<const int64_t> keys, int64_t count);

// `total` as whole numbers in proportion to the weights, by largest remainder; ties go to the lower index. Some weight
// is > 0.
std::vector<int64_t> apportion(int64_t total, std::span<const double> weights);

// `total` in `parts` parts that differ by at most one.
std::vector<int64_t> even_parts(int64_t total, int64_t parts);

// Moves single rows from the largest client to those below `needed`, from the donor's most plentiful group that the
// receiver may hold. Clients stay below `needed` only if no such donor is left.
void raise_to_minimum(std::vector<Group>& groups, int64_t clients, int64_t needed);

// Each client's rows: random slices of the groups, in group order.
std::vector<std::vector<int64_t>> deal(std::vector<Group> groups, int64_t clients, uint64_t seed);

// Hands of distinct classes from shuffled decks: every class is dealt once before any is dealt again, except that a
// hand never holds a class twice.
class ClassDeck {
 public:
  ClassDeck(std::vector<int64_t> classes, RandomStream stream);

  // size is at most the number of classes.
  std::vector<int64_t> hand(int64_t size);

 private:
  const std::vector<int64_t> classes_;
  RandomStream stream_;
  std::vector<int64_t> deck_;
};

}  // namespace sotto::data::partitioning
