#include "data/readers/numpy_arrays.h"

#include "data/readers/feature_file.h"
#include "io/numpy.h"

#include <ATen/ATen.h>

#include <vector>

namespace sotto::data {
namespace {

struct ArrayName {
  const char* name;
  std::vector<const char*> files;  // without their ending; the first that is there counts
};

const std::vector<ArrayName>& array_names() {
  static const std::vector<ArrayName> names = {{"x", {"x", "x_train"}},          {"y", {"y", "y_train"}},
                                               {"domain", {"domain"}},           {"test_x", {"test_x", "x_test"}},
                                               {"test_y", {"test_y", "y_test"}}, {"test_domain", {"test_domain"}}};
  return names;
}

std::string file_of(const FileTree& tree, const ArrayName& array) {
  for (const char* name : array.files) {
    const std::string file = std::string(name) + ".npy";
    if (tree.contains(file)) return file;
  }
  return "";
}

// Channels first, as models want images.
at::Tensor channels_first(const at::Tensor& x) {
  if (x.scalar_type() != at::kByte) return x;
  if (x.dim() == 3) return x.unsqueeze(1);
  const auto is_channels = [&](int64_t dimension) { return x.size(dimension) == 1 || x.size(dimension) == 3; };
  if (x.dim() == 4 && is_channels(3) && !is_channels(1)) return x.permute({0, 3, 1, 2}).contiguous();
  return x;
}

}  // namespace

bool is_numpy_arrays(const FileTree& tree) {
  return !file_of(tree, array_names()[0]).empty() && !file_of(tree, array_names()[1]).empty();
}

Dataset read_numpy_arrays(const FileTree& tree, const std::string& name) {
  NamedTensors tensors;
  for (const ArrayName& array : array_names()) {
    const std::string file = file_of(tree, array);
    if (file.empty()) continue;
    const at::Tensor read = io::parse_npy(tree.read(file), tree.where(file));
    const bool is_records = std::string(array.name).ends_with('x');
    const bool is_whole = at::isIntegralType(read.scalar_type(), false);
    tensors.push_back({array.name, is_records ? channels_first(read) : is_whole ? read.to(at::kLong) : read});
  }
  return dataset_of(tensors, {}, tree.root(), name);
}

}  // namespace sotto::data
