#include "data/partition/labels.h"

#include "base/error.h"

#include <ATen/ATen.h>

#include <algorithm>

namespace sotto::data::partitioning {
namespace {

std::vector<int64_t> read_column(const at::Tensor& column, int64_t rows, int64_t bound, const std::string& what) {
  if (!column.defined() || column.dim() != 1 || column.size(0) != rows || column.scalar_type() != at::kLong) {
    fail_user("{}: expected one whole number per record, {} in all", what, rows);
  }
  const at::Tensor flat = column.contiguous();
  const auto* values = flat.data_ptr<int64_t>();
  for (int64_t row = 0; row < rows; ++row) {
    if (values[row] < 0 || values[row] >= bound) {
      fail_user("{} of record {} is {}, outside 0 … {}: correct the dataset", what, row, values[row], bound - 1);
    }
  }
  return {values, values + rows};
}

}  // namespace

Labels read_labels(const Dataset& dataset, const Records& records, const char* split) {
  const std::string where = fmt::format("dataset '{}', {} split", dataset.name, split);
  Labels labels;
  labels.classes = dataset.classes();
  labels.domains = dataset.domains();
  if (records.size() == 0) return labels;
  labels.y = read_column(records.y, records.size(), labels.classes, where + ": label");
  labels.domain = read_column(records.domain, records.size(), labels.domains, where + ": domain");
  return labels;
}

std::vector<int64_t> classes_present(const Labels& labels) {
  std::vector<int64_t> present = labels.y;
  std::sort(present.begin(), present.end());
  present.erase(std::unique(present.begin(), present.end()), present.end());
  return present;
}

}  // namespace sotto::data::partitioning
