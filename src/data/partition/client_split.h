// What becomes of the records a client was dealt: some are held out for testing, a share of the rest is kept for
// training.
#pragma once

#include "base/random.h"

#include <cstdint>
#include <vector>

namespace sotto::data::partitioning {

struct ClientSplit {
  double test_fraction = 0.0;   // [0, 1); 0 holds nothing out
  double train_fraction = 1.0;  // (0, 1], of what is not held out

  // A client with at least two records keeps at least one on either side (none for testing if test_fraction is 0).
  int64_t test_size(int64_t records) const;
  int64_t train_size(int64_t records) const;
  // The fewest records out of which `train_records` are left for training.
  int64_t records_for(int64_t train_records) const;
};

// `count` of the rows, spread evenly over their order from a random start, so that rows sorted by class give each class
// its share. They are taken out of `rows`; both lists keep the order. count is at most rows.size().
std::vector<int64_t> take_spread(std::vector<int64_t>& rows, int64_t count, RandomStream& stream);

}  // namespace sotto::data::partitioning
