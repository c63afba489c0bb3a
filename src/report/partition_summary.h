// What the table and the picture of a partition show.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

namespace sotto::report {

struct PartitionSummary {
  std::string title;                     // "fashion-mnist, dirichlet (alpha 0.5)"
  at::Tensor counts;                     // int64 [clients shown, classes]: training records
  std::vector<std::string> class_names;  // one per column of counts
  int64_t clients = 0;                   // registered clients, possibly more than are shown
};

}  // namespace sotto::report
