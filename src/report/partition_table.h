// A partition for the terminal.
#pragma once

#include "report/partition_summary.h"

#include <string>

namespace sotto::report {

// A row per client and a column per class, with the number of classes each client holds, its size, and totals. Of many
// clients the middle rows are left out, of many classes the last columns are summed up; the totals count everything in
// `counts`. Ends with a newline.
std::string partition_table(const PartitionSummary& summary, int64_t max_rows = 24, int64_t max_classes = 12);

}  // namespace sotto::report
