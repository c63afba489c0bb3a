// The table of models: one line each. Nothing is built until it is asked for.
#pragma once

#include "models/model.h"

#include <ATen/core/Generator.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

namespace sotto::models {

// What a family's factory is given.
struct Blueprint {
  const ModelOptions& options;
  const Task& task;
  at::Generator init;
  bool may_be_opaque = false;  // nothing is bounded and no noise added: models/script/opaque.h
};

struct CatalogueEntry {
  const char* name;
  const char* what;
  bool tokens;           // reads token ids
  const char* keys;      // its own keys of [model], with spaces between them
  const char* citation;  // "" for the project's own
  std::shared_ptr<Model> (*make)(const Blueprint& blueprint);
  // Translates weights saved by other programs into this model's names, or null where the names already agree.
  NamedTensors (*translate)(NamedTensors weights);
  // model.weights is the model itself, its form and its values.
  bool is_archive = false;
};

std::span<const CatalogueEntry> catalogue();

// Whether the model has this key of [model] besides those that every model has. An unknown model has them all: it is
// refused elsewhere, by name.
bool has_key(const std::string& model, const std::string& key);

// The entry, or a UserError with the nearest name.
const CatalogueEntry& find_entry(const std::string& name);

// The families. Each throws a UserError for a task or options it cannot fit.
std::shared_ptr<Model> make_mlp(const Blueprint& blueprint, std::vector<int64_t> hidden);

struct ConvStage {
  int64_t out, kernel, stride, padding;
  int64_t pool_kernel, pool_stride;
};
std::shared_ptr<Model> make_conv_net(const Blueprint& blueprint, std::vector<ConvStage> stages,
                                     std::vector<int64_t> hidden);

struct ResNetSize {
  int64_t blocks[4];
  bool bottleneck;
};
std::shared_ptr<Model> make_resnet(const Blueprint& blueprint, const ResNetSize& size);

std::shared_ptr<Model> make_keras_resnet50(const Blueprint& blueprint);
// Features of the whole image, then of every place of the last layer: [B, (1 + places)·2048].
std::shared_ptr<Model> make_keras_resnet50_patches(const Blueprint& blueprint);
NamedTensors translate_keras_resnet50(NamedTensors weights);

std::shared_ptr<Model> make_mobilenet_v2(const Blueprint& blueprint);
NamedTensors translate_mobilenet_v2(NamedTensors weights);

struct VitSize {
  int64_t width, depth, heads;
};
std::shared_ptr<Model> make_vit(const Blueprint& blueprint, const VitSize& size);
// Drops the class token and its position: this ViT pools the patches.
NamedTensors translate_vit(NamedTensors weights);

std::shared_ptr<Model> make_feature_adapter(const Blueprint& blueprint);

// Fixed features and a linear head: models/fixed.
std::shared_ptr<Model> make_hog_model(const Blueprint& blueprint);
std::shared_ptr<Model> make_scatter_model(const Blueprint& blueprint);
// A linear head on records as unit vectors.
std::shared_ptr<Model> make_linear_head(const Blueprint& blueprint);

std::shared_ptr<Model> make_minilm(const Blueprint& blueprint);
NamedTensors translate_minilm(NamedTensors weights);

}  // namespace sotto::models
