#include "models/lora.h"

#include "base/error.h"
#include "base/text.h"
#include "models/layers.h"
#include "models/script/free_layers.h"

#include <ATen/ATen.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace sotto::models {
namespace {

constexpr const char* kDown = ".lora_a.weight";
constexpr const char* kUp = ".lora_b.weight";
constexpr size_t kMostNames = 12;

// A weight [out, in] and the layers that use it.
struct Target {
  std::string name;  // of the layer: the weight's without ".weight"
  at::Tensor weight;
  std::vector<at::Tensor> biases;
  std::vector<std::shared_ptr<Layer>> layers;
};

std::string name_of(const Model& model, const at::Tensor& weight) {
  for (const auto& parameter : model.named_parameters()) {
    if (!parameter.value().is_same(weight)) continue;
    const std::string& name = parameter.key();
    return name.ends_with(".weight") ? name.substr(0, name.rfind('.')) : name;
  }
  SOTTO_INVARIANT(false);
  return "";
}

// Layers, once each, in the order of the model.
std::vector<Target> linear_layers(const Model& model) {
  std::vector<Target> found;
  const auto take = [&](const auto& layer) {
    if (layer == nullptr) return;
    auto known =
        std::find_if(found.begin(), found.end(), [&](const Target& t) { return t.weight.is_same(layer->weight); });
    if (known == found.end()) known = found.insert(found.end(), {name_of(model, layer->weight), layer->weight, {}, {}});
    if (layer->bias.defined()) known->biases.push_back(layer->bias);
    known->layers.push_back(layer);
  };
  for (const auto& module : model.modules(false)) {
    take(std::dynamic_pointer_cast<Linear>(module));
    take(std::dynamic_pointer_cast<FreeLinear>(module));
  }
  return found;
}

// Whether `part` is some of the name's parts, whole and in a row.
bool has_part(const std::string& name, const std::string& part) {
  return ("." + name + ".").find("." + part + ".") != std::string::npos;
}

// What layers are called behind the last dot, each once.
std::string last_names(const std::vector<Target>& layers) {
  std::vector<std::string> names;
  for (const Target& layer : layers) {
    const std::string last = layer.name.substr(layer.name.rfind('.') + 1);
    if (std::find(names.begin(), names.end(), last) == names.end()) names.push_back(last);
  }
  const size_t left_out = names.size() - std::min(names.size(), kMostNames);
  names.resize(names.size() - left_out);
  return join(names, ", ") + (left_out > 0 ? fmt::format(" and {} more", left_out) : "");
}

[[noreturn]] void fail_target(const Model& model, const std::string& target, const std::vector<Target>& layers) {
  const auto names = model.named_parameters().keys();
  const bool is_there =
      std::any_of(names.begin(), names.end(), [&](const auto& name) { return has_part(name, target); });
  fail_user("model.lora.targets: '{}' {}; the model's linear layers are called {} (the first is '{}')", target,
            is_there ? "is no linear layer and holds none" : "is part of no layer's name", last_names(layers),
            layers.front().name);
}

std::vector<Target> find_targets(const Model& model, const std::vector<std::string>& targets) {
  std::vector<Target> layers = linear_layers(model);
  SOTTO_INVARIANT(!layers.empty());  // a model has a head
  for (const std::string& target : targets) {
    if (std::none_of(layers.begin(), layers.end(), [&](const Target& layer) { return has_part(layer.name, target); }))
      fail_target(model, target, layers);
  }
  std::erase_if(layers, [&](const Target& layer) {
    return std::none_of(targets.begin(), targets.end(),
                        [&](const auto& target) { return has_part(layer.name, target); });
  });
  return layers;
}

void refuse_taken_names(const Model& model) {
  for (const NamedTensor& tensor : model.state()) {
    if (is_lora(tensor.name))
      fail_user("model.lora: the model has '{}' already, and low-rank paths would be called so; rename it",
                tensor.name);
  }
}

std::shared_ptr<FreeLinear> add_factor(Model& model, const std::string& name, const at::Tensor& weight) {
  auto factor = add<FreeLinear>(model, name, weight, at::Tensor());
  factor->register_parameter("weight", weight);
  return factor;
}

void add_path(Model& model, const Target& target, int64_t rank, const at::Generator& init) {
  const int64_t out = target.weight.size(0), in = target.weight.size(1);
  if (rank > std::min(in, out)) {
    fail_user("model.lora.rank: {} is more than the layer '{}' [{}, {}] has; it can be {} at most", rank, target.name,
              out, in, std::min(in, out));
  }
  const double bound = 1.0 / std::sqrt(static_cast<double>(in));
  const auto down = add_factor(model, target.name + ".lora_a", at::empty({rank, in}).uniform_(-bound, bound, init));
  const auto up = add_factor(model, target.name + ".lora_b", at::zeros({out, rank}));
  for (const auto& layer : target.layers) layer->add_path(down, up);
}

}  // namespace

void add_lora(Model& model, const LoraOptions& options, at::Generator init) {
  refuse_taken_names(model);
  for (const Target& target : find_targets(model, options.targets)) {
    target.weight.set_requires_grad(false);
    for (const at::Tensor& bias : target.biases) bias.set_requires_grad(false);
    add_path(model, target, options.rank, init);
  }
}

bool is_lora(const std::string& name) {
  return name.ends_with(kDown) || name.ends_with(kUp);
}

NamedTensors merge_lora(NamedTensors state) {
  const at::NoGradGuard no_grad;
  NamedTensors merged;
  for (const auto& [name, value] : state) {
    if (is_lora(name)) continue;
    const std::string layer = name.ends_with(".weight") ? name.substr(0, name.rfind('.')) : name;
    const at::Tensor down = find_tensor(state, layer + kDown), up = find_tensor(state, layer + kUp);
    merged.push_back({name, down.defined() && up.defined() ? value + up.mm(down) : value});
  }
  return merged;
}

}  // namespace sotto::models
