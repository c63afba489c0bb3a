#include "models/weights/tfjs.h"

#include "base/error.h"
#include "base/files.h"

#include <ATen/ATen.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>

namespace sotto::models {
namespace {

at::Tensor in_pytorch_layout(const at::Tensor& value, const std::string& last_part) {
  const bool depthwise = last_part == "depthwise_weights" || last_part == "depthwise_kernel";
  if (value.dim() == 4 && depthwise) return value.permute({2, 3, 0, 1}).reshape({-1, 1, value.size(0), value.size(1)});
  if (value.dim() == 4) return value.permute({3, 2, 0, 1}).contiguous();
  if (value.dim() == 2 && last_part == "kernel") return value.t().contiguous();
  return value;
}

std::string in_pytorch_words(std::string name, const std::string& last_part) {
  static const std::map<std::string, std::string> words = {{"kernel", "weight"},
                                                           {"gamma", "weight"},
                                                           {"beta", "bias"},
                                                           {"moving_mean", "running_mean"},
                                                           {"moving_variance", "running_var"}};
  if (const auto found = words.find(last_part); found != words.end())
    name.replace(name.size() - last_part.size(), last_part.size(), found->second);
  std::replace(name.begin(), name.end(), '/', '.');
  return name;
}

// Takes the next tensor off `bytes`.
NamedTensor take_tensor(const nlohmann::json& entry, std::string_view& bytes, const std::string& where) {
  const auto name = entry.at("name").get<std::string>();
  const auto type = entry.at("dtype").get<std::string>();
  if (entry.contains("quantization") || (type != "float32" && type != "int32"))
    fail_user("{}: tensor '{}' is stored as {}: only unquantised float32 and int32 are supported", where, name,
              entry.contains("quantization") ? "quantised numbers" : type);
  const auto shape = entry.at("shape").get<std::vector<int64_t>>();
  uint64_t size = 4;
  for (const int64_t extent : shape) {
    if (extent < 0 || (extent > 0 && size > bytes.size() / static_cast<uint64_t>(extent)))
      fail_user("{}: its shards end within tensor '{}'", where, name);
    size *= static_cast<uint64_t>(extent);
  }
  if (size > bytes.size()) fail_user("{}: its shards end within tensor '{}'", where, name);
  const auto scalar = type == "float32" ? at::kFloat : at::kInt;
  const at::Tensor value = at::from_blob(const_cast<char*>(bytes.data()), shape, scalar).clone();
  bytes.remove_prefix(size);
  const std::string last_part = name.substr(name.rfind('/') + 1);
  return {in_pytorch_words(name, last_part), in_pytorch_layout(value, last_part)};
}

std::string read_shards(const nlohmann::json& group, const fs::path& folder, const std::string& where) {
  std::string bytes;
  for (const auto& entry : group.at("paths")) {
    const auto name = entry.get<std::string>();
    if (fs::path(name).is_absolute() || name.find("..") != name.npos)
      fail_user("{}: shard '{}' is outside of its folder", where, name);
    bytes += read_file(folder / name);
  }
  return bytes;
}

}  // namespace

NamedTensors read_tfjs(const fs::path& model_json) {
  const std::string where = model_json.string();
  try {
    const auto model = nlohmann::json::parse(read_file(model_json));
    NamedTensors tensors;
    for (const auto& group : model.at("weightsManifest")) {
      const std::string shards = read_shards(group, model_json.parent_path(), where);
      std::string_view rest = shards;
      for (const auto& entry : group.at("weights")) tensors.push_back(take_tensor(entry, rest, where));
      if (!rest.empty())
        fail_user("{}: {} bytes are left over behind the last tensor of its shards", where, rest.size());
    }
    return tensors;
  } catch (const nlohmann::json::exception& error) {
    fail_user("{}: not a TensorFlow.js model ({})", where, error.what());
  }
}

}  // namespace sotto::models
