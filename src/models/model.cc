#include "models/model.h"

#include "base/error.h"
#include "base/text.h"
#include "models/catalogue.h"
#include "models/lora.h"
#include "models/weights/weight_store.h"
#include "models/weights/weights.h"

#include <ATen/ATen.h>

#include <algorithm>

namespace sotto::models {
namespace {

bool is_head(const Model& model, const std::string& name) {
  return name.starts_with(model.head_name() + ".");
}

bool is_adapter(const std::string& name) {
  return name.find("adapter.") != name.npos;
}

void check_options(const ModelOptions& options, const Task& task, const CatalogueEntry& entry) {
  if (task.classes < 2) fail_user("a task needs at least 2 classes, this one has {}", task.classes);
  if (!(options.dropout >= 0.0 && options.dropout < 1.0))
    fail_user("model.dropout must be at least 0 and below 1, not {}", options.dropout);
  if (entry.tokens && !task.tokens)
    fail_user("model '{}' reads text, but this task's records are not text", options.name);
  if (!entry.tokens && task.tokens && !entry.is_archive)
    fail_user("model '{}' cannot read text: use minilm, or set data.features = \"minilm\"", options.name);
}

void freeze_backbone(Model& model) {
  for (auto& parameter : model.named_parameters())
    if (!is_head(model, parameter.key()) && !is_adapter(parameter.key())) parameter.value().set_requires_grad(false);
}

std::vector<std::string> resolve_personal(const Model& model, const std::vector<std::string>& prefixes) {
  std::vector<std::string> resolved;
  for (const std::string& prefix : prefixes) {
    const bool classifier = prefix == "head" || prefix == "head.";
    resolved.push_back(classifier ? model.head_name() + "." : prefix);
    const auto keys = model.named_parameters().keys();
    if (!std::any_of(keys.begin(), keys.end(), [&](const auto& key) { return key.starts_with(resolved.back()); }))
      fail_user("model.personal: no parameter's name begins with '{}'; the first is '{}', the last '{}'", prefix,
                keys.front(), keys.back());
  }
  return resolved;
}

// Parameters saved from a model wrapped in DataParallel all begin with "module.".
void strip_wrapper(NamedTensors& weights) {
  const std::string wrapper = "module.";
  if (!std::all_of(weights.begin(), weights.end(), [&](const auto& w) { return w.name.starts_with(wrapper); })) return;
  for (auto& weight : weights) weight.name.erase(0, wrapper.size());
}

}  // namespace

NamedTensors Model::trainable(bool personal) const {
  NamedTensors found;
  for (const auto& parameter : named_parameters()) {
    if (!parameter.value().requires_grad()) continue;
    const bool is_personal = std::any_of(personal_prefixes_.begin(), personal_prefixes_.end(),
                                         [&](const auto& prefix) { return parameter.key().starts_with(prefix); });
    if (is_personal == personal) found.push_back({parameter.key(), parameter.value()});
  }
  return found;
}

NamedTensors Model::shared_parameters() const {
  return trainable(false);
}

NamedTensors Model::personal_parameters() const {
  return trainable(true);
}

NamedTensors Model::buffer_tensors() const {
  NamedTensors found;
  for (const auto& buffer : named_buffers()) found.push_back({buffer.key(), buffer.value()});
  return found;
}

NamedTensors Model::state() const {
  NamedTensors found;
  for (const auto& parameter : named_parameters()) found.push_back({parameter.key(), parameter.value()});
  for (auto& buffer : buffer_tensors()) found.push_back(std::move(buffer));
  return found;
}

std::shared_ptr<Model> make_model(const ModelOptions& options, const Task& task, RandomStream& init,
                                  bool may_be_opaque) {
  const CatalogueEntry& entry = find_entry(options.name);
  check_options(options, task, entry);
  std::shared_ptr<Model> model = entry.make({options, task, init.torch_generator(), may_be_opaque});
  model->set_generator(init.torch_generator());
  if (!options.weights.empty() && !entry.is_archive)
    load_weights(*model, options.name, read_weights(find_weights(options.weights)), options.weights);
  const bool is_low_rank = options.lora.rank > 0;
  if (options.freeze_backbone || is_low_rank) freeze_backbone(*model);
  if (is_low_rank) add_lora(*model, options.lora, init.torch_generator());
  model->personal_prefixes_ = resolve_personal(*model, options.personal);
  return model;
}

void load_weights(Model& model, const std::string& model_name, NamedTensors weights, const std::string& where) {
  strip_wrapper(weights);
  if (const auto translate = find_entry(model_name).translate) weights = translate(std::move(weights));
  std::erase_if(weights, [](const auto& w) { return w.name.ends_with(".num_batches_tracked"); });
  const auto fits = [&](const NamedTensor& tensor) {
    const at::Tensor given = find_tensor(weights, tensor.name);
    return given.defined() && given.sizes() == tensor.value.sizes();
  };
  NamedTensors into = model.state();
  const bool head_fits =
      std::all_of(into.begin(), into.end(), [&](const auto& t) { return !is_head(model, t.name) || fits(t); });
  std::erase_if(
      into, [&](const auto& t) { return (is_head(model, t.name) && !head_fits) || (is_adapter(t.name) && !fits(t)); });
  if (!head_fits) std::erase_if(weights, [&](const auto& w) { return is_head(model, w.name); });
  assign_weights(into, weights, fmt::format("{} (for model '{}')", where, model_name));
}

}  // namespace sotto::models
