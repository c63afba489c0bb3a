#include "methods/prototypes/prototype_set.h"

#include <ATen/ATen.h>

#include <fmt/format.h>

namespace sotto::methods {

PrototypeSet PrototypeSet::where(const at::Tensor& keep) const {
  const at::Tensor rows = keep.nonzero().squeeze(1);
  return {values.index_select(0, rows), classes.index_select(0, rows), weights.index_select(0, rows)};
}

PrototypeSet concatenate(const std::vector<PrototypeSet>& sets) {
  std::vector<at::Tensor> values, classes, weights;
  for (const PrototypeSet& set : sets) {
    if (set.empty()) continue;
    values.push_back(set.values);
    classes.push_back(set.classes);
    weights.push_back(set.weights);
  }
  if (values.empty()) return {};
  return {at::cat(values), at::cat(classes), at::cat(weights)};
}

void append(NamedTensors& to, std::string_view prefix, const PrototypeSet& set) {
  if (set.empty()) return;
  to.push_back({fmt::format("{}.values", prefix), set.values});
  to.push_back({fmt::format("{}.classes", prefix), set.classes});
  to.push_back({fmt::format("{}.weights", prefix), set.weights});
}

PrototypeSet find_prototypes(const NamedTensors& from, std::string_view prefix) {
  PrototypeSet set;
  set.values = find_tensor(from, fmt::format("{}.values", prefix));
  if (!set.values.defined()) return {};
  set.classes = find_tensor(from, fmt::format("{}.classes", prefix));
  set.weights = find_tensor(from, fmt::format("{}.weights", prefix));
  return set;
}

}  // namespace sotto::methods
