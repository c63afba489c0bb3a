// A run's partition in the form that report/ draws.
#pragma once

#include "federation/setup.h"
#include "report/partition_summary.h"

namespace sotto::run {

report::PartitionSummary summarise_partition(const federation::Setup& setup);

}  // namespace sotto::run
