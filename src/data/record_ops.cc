#include "data/record_ops.h"

#include <ATen/ATen.h>

namespace sotto::data {

Records select_records(const Records& records, const at::Tensor& indices) {
  Records selected;
  if (records.size() == 0) return selected;
  if (records.x.defined()) selected.x = records.x.index_select(0, indices);
  selected.y = records.y.index_select(0, indices);
  selected.domain = records.domain.index_select(0, indices);
  if (!records.texts.empty()) {
    const auto* index = indices.data_ptr<int64_t>();
    for (int64_t i = 0; i < indices.size(0); ++i)
      selected.texts.push_back(records.texts[static_cast<size_t>(index[i])]);
  }
  return selected;
}

Records concat_records(std::span<const Records> parts) {
  Records joined;
  std::vector<at::Tensor> x;
  std::vector<at::Tensor> y;
  std::vector<at::Tensor> domain;
  for (const Records& part : parts) {
    if (part.size() == 0) continue;
    if (part.x.defined()) x.push_back(part.x);
    y.push_back(part.y);
    domain.push_back(part.domain);
    joined.texts.insert(joined.texts.end(), part.texts.begin(), part.texts.end());
  }
  if (y.empty()) return joined;
  if (!x.empty()) joined.x = at::cat(x);
  joined.y = at::cat(y);
  joined.domain = at::cat(domain);
  return joined;
}

at::Tensor rows_where(const at::Tensor& keep) {
  return keep.nonzero().flatten().contiguous();
}

std::vector<std::string> numbered_names(int64_t count) {
  std::vector<std::string> names;
  for (int64_t i = 0; i < count; ++i) names.push_back(std::to_string(i));
  return names;
}

}  // namespace sotto::data
