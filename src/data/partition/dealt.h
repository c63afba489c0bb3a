// A partition whose rows were dealt out once: O(records) memory.
#pragma once

#include "data/partition.h"
#include "data/partition/client_split.h"
#include "data/partition/labels.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace sotto::data::partitioning {

// Makes shards of the training rows dealt to each client: holds out test rows or deals those of the test split, keeps
// split.train_fraction of the training rows. Both are spread over the cells of `strata`, the same rows in other labels.
std::unique_ptr<Partition> make_dealt(const Labels& train, const Labels& test, const Labels& strata,
                                      std::vector<std::vector<int64_t>> dealt, const ClientSplit& split, uint64_t seed);

}  // namespace sotto::data::partitioning
