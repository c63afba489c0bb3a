#include "data/readers/feature_file.h"

#include "base/error.h"
#include "data/record_ops.h"
#include "io/safetensors.h"

#include <ATen/ATen.h>

#include <nlohmann/json.hpp>

namespace sotto::data {
namespace {

using Path = std::filesystem::path;

constexpr int64_t kMostNames = 1'000'000;

bool is_whole(const at::Tensor& tensor) {
  return tensor.scalar_type() == at::kLong || tensor.scalar_type() == at::kInt;
}

Kind kind_of(const at::Tensor& x, const Path& path) {
  if (x.scalar_type() == at::kByte && x.dim() == 4) return Kind::kImages;
  if (x.is_floating_point() && x.dim() == 2) return Kind::kFeatures;
  if (is_whole(x) && x.dim() == 2) return Kind::kTokens;
  fail_user("{}: x must be float [N, D], uint8 [N, C, H, W] or int64 [N, L]", path.string());
}

at::Tensor whole_numbers(const NamedTensors& tensors, const std::string& name, const Path& path) {
  const at::Tensor found = find_tensor(tensors, name);
  if (!found.defined()) return found;
  if (!is_whole(found) || found.dim() != 1) fail_user("{}: {} must be int64 [N]", path.string(), name);
  return found.to(at::kLong);
}

Records read_records(const NamedTensors& tensors, const std::string& prefix, const Path& path) {
  Records records;
  records.x = find_tensor(tensors, prefix + "x");
  records.y = whole_numbers(tensors, prefix + "y", path);
  records.domain = whole_numbers(tensors, prefix + "domain", path);
  if (records.x.defined() != records.y.defined())
    fail_user("{}: {}x needs {}y and the reverse", path.string(), prefix, prefix);
  if (!records.x.defined()) return {};
  const Kind kind = kind_of(records.x, path);
  if (kind == Kind::kFeatures) records.x = records.x.to(at::kFloat);
  if (kind == Kind::kTokens) records.x = records.x.to(at::kLong);
  if (!records.domain.defined()) records.domain = at::zeros_like(records.y);
  return records;
}

std::vector<std::string> read_names(const std::map<std::string, std::string>& metadata, const std::string& key,
                                    const at::Tensor& numbers, const Path& path) {
  const auto found = metadata.find(key);
  if (found == metadata.end()) {
    const int64_t largest = numbers.numel() == 0 ? 0 : numbers.max().item<int64_t>();
    if (largest >= kMostNames) {
      fail_user("{}: {} is the number of a class or domain; they count from 0, and without {} there may be {} of them",
                path.string(), largest, key, kMostNames);
    }
    return numbered_names(largest + 1);
  }
  try {
    return nlohmann::json::parse(found->second).get<std::vector<std::string>>();
  } catch (const nlohmann::json::exception&) {
    fail_user("{}: the metadata entry {} is not a JSON list of strings", path.string(), key);
  }
}

// Names may come from a file system and need not be UTF-8.
std::string json_list(const std::vector<std::string>& names) {
  return nlohmann::json(names).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

void add_records(io::SafeTensors& content, const std::string& prefix, const Records& records) {
  if (records.size() == 0) return;
  content.tensors.push_back({prefix + "y", records.y});
  content.tensors.push_back({prefix + "domain", records.domain});
  content.tensors.push_back({prefix + "x", records.x});
}

}  // namespace

Dataset read_feature_file(const Path& path, const std::string& name) {
  const io::SafeTensors content = io::read_safetensors(path);
  return dataset_of(content.tensors, content.metadata, path, name);
}

Dataset dataset_of(const NamedTensors& tensors, const std::map<std::string, std::string>& metadata, const Path& path,
                   const std::string& name) {
  Dataset dataset;
  dataset.name = name;
  dataset.train = read_records(tensors, "", path);
  dataset.test = read_records(tensors, "test_", path);
  if (dataset.train.size() == 0) fail_user("{} holds no records (tensors x and y)", path.string());
  dataset.kind = kind_of(dataset.train.x, path);
  if (dataset.test.size() > 0 && kind_of(dataset.test.x, path) != dataset.kind) {
    fail_user("{}: x and test_x are of different kinds", path.string());
  }
  dataset.class_names = read_names(metadata, "class_names", dataset.train.y, path);
  dataset.domain_names = read_names(metadata, "domain_names", dataset.train.domain, path);
  validate(dataset);
  return dataset;
}

void write_feature_file(const Path& path, const Dataset& dataset, const std::map<std::string, std::string>& extra) {
  SOTTO_INVARIANT(dataset.kind != Kind::kText);
  io::SafeTensors content;
  add_records(content, "", dataset.train);
  add_records(content, "test_", dataset.test);
  content.metadata = extra;
  content.metadata["class_names"] = json_list(dataset.class_names);
  content.metadata["domain_names"] = json_list(dataset.domain_names);
  io::write_safetensors(path, content);
}

}  // namespace sotto::data
