// Records to choose settings by, which are neither trained on nor tested on.
#pragma once

#include "data/partition.h"
#include "data/partition/labels.h"

#include <cstdint>
#include <memory>

namespace sotto::data::partitioning {

// `partition`, with that share of every client's training records set apart: spread over classes and domains, at least
// one record of a client that has two, and never all of them.
std::unique_ptr<Partition> set_apart(std::unique_ptr<Partition> partition, Labels train, double share, uint64_t seed);

}  // namespace sotto::data::partitioning
