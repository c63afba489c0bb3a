// Selecting and joining records.
#pragma once

#include "data/dataset.h"

#include <span>

namespace sotto::data {

// The records at `indices` (int64), in that order.
Records select_records(const Records& records, const at::Tensor& indices);

// One after the other. All must be of the same kind and record shape.
Records concat_records(std::span<const Records> parts);

// Row numbers (int64 [n]) of the records for which `keep` (bool [N]) holds.
at::Tensor rows_where(const at::Tensor& keep);

// "0" … "count-1": names for classes that have none.
std::vector<std::string> numbered_names(int64_t count);

}  // namespace sotto::data
