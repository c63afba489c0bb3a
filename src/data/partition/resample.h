// Clients whose records are drawn when asked for, never stored.
#pragma once

#include "data/partition.h"
#include "data/partition/client_split.h"
#include "data/partition/labels.h"

#include <cstdint>
#include <memory>

namespace sotto::data::partitioning {

// Memory does not grow with the number of clients. Too few records for records_per_client is a UserError.
std::unique_ptr<Partition> make_resample(const DataOptions& options, const Dataset& dataset, const Labels& train,
                                         const ClientSplit& split, uint64_t seed);

}  // namespace sotto::data::partitioning
