#include "data/declared_classes.h"

#include "base/error.h"
#include "data/custom.h"
#include "data/record_ops.h"

#include <ATen/ATen.h>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace sotto::data {

void declare_classes(Dataset& dataset, const std::vector<std::string>& names) {
  if (names.empty() || dataset.class_names == names) return;
  std::vector<int64_t> place;
  for (const std::string& found : dataset.class_names) {
    const auto at = std::find(names.begin(), names.end(), found);
    if (at == names.end()) {
      fail_user("{}: the records have a class '{}', which is not among those declared: {}", dataset.name, found,
                fmt::join(names, ", "));
    }
    place.push_back(at - names.begin());
  }
  const at::Tensor declared = at::tensor(place, at::kLong);
  for (Records* records : {&dataset.train, &dataset.test}) {
    if (records->size() > 0) records->y = declared.index_select(0, records->y);
  }
  dataset.class_names = names;
}

bool finds_classes_in_records(const DataOptions& options, const Dataset& dataset) {
  if (options.path.empty() || !options.classes.empty()) return false;
  const bool is_table = dataset.kind == Kind::kFeatures && options.features.empty() && may_be_table(options.path);
  return !is_table;
}

std::string declaration_of(const std::vector<std::string>& names) {
  const auto count = static_cast<int64_t>(names.size());
  if (names == numbered_names(count)) return fmt::format("data.classes = {}", count);
  return fmt::format("data.classes = {}",
                     nlohmann::json(names).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

}  // namespace sotto::data
