// Class and domain of every row of a split, checked.
#pragma once

#include "data/dataset.h"

#include <cstdint>
#include <vector>

namespace sotto::data::partitioning {

struct Labels {
  std::vector<int64_t> y;       // in [0, classes)
  std::vector<int64_t> domain;  // in [0, domains)
  int64_t classes = 0;
  int64_t domains = 0;

  int64_t size() const { return static_cast<int64_t>(y.size()); }
  // Rows in the same cell have the same class and domain. In [0, classes · domains).
  int64_t cell(int64_t row) const { return domain[static_cast<size_t>(row)] * classes + y[static_cast<size_t>(row)]; }
};

// A label or domain out of range, or missing, is a UserError that names the row.
Labels read_labels(const Dataset& dataset, const Records& records, const char* split);

// The classes that have records, ascending.
std::vector<int64_t> classes_present(const Labels& labels);

}  // namespace sotto::data::partitioning
