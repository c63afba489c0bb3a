// Test shards that look like the training shards.
#pragma once

#include "data/partition/labels.h"

#include <cstdint>
#include <vector>

namespace sotto::data::partitioning {

// Deals the test rows of every class and domain to clients in proportion to their training rows of it, so that a client
// is tested on the mixture it trains on; no row goes to two clients. A client with at least two training rows gets at
// least one test row while there are any of its classes; rows of classes nobody trains on are left out, as is
// the share of a class whose training rows were dealt to nobody. result[i]
// belongs to client i.
std::vector<std::vector<int64_t>> deal_test_rows(const Labels& train,
                                                 const std::vector<std::vector<int64_t>>& train_rows,
                                                 const Labels& test, uint64_t seed);

}  // namespace sotto::data::partitioning
