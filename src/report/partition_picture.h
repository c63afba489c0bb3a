// A partition as a picture.
#pragma once

#include "report/partition_summary.h"

#include <filesystem>

namespace sotto::report {

// A PNG with clients from left to right and classes from top to bottom. Few of them: a disc per cell whose area is the
// number of training records; many: shaded cells. Above, a bar per client for its size; beside it, a legend. At most
// the first 200 clients and classes are drawn, and the subtitle says so. Written atomically.
void write_partition_picture(const std::filesystem::path& path, const PartitionSummary& summary);

}  // namespace sotto::report
