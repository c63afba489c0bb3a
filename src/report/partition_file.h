// A partition as a file that the page reads.
#pragma once

#include "report/partition_summary.h"

#include <filesystem>

namespace sotto::report {

// {"title", "clients", "classes": [...], "counts": [[records of each class] per client shown]}, atomically.
void write_partition_file(const std::filesystem::path& path, const PartitionSummary& summary);

}  // namespace sotto::report
