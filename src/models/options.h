// [model]: what is trained.
#pragma once

#include "settings/section.h"

#include <nlohmann/json_fwd.hpp>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace sotto::models {

enum class Normalisation { kGroup, kBatch };
constexpr auto choices(Normalisation) {
  return std::to_array<settings::Choice<Normalisation>>(
      {{Normalisation::kGroup, "group"}, {Normalisation::kBatch, "batch"}});
}

// Low-rank adaptation (lora.h).
struct LoraOptions {
  int64_t rank = 0;                  // 0 = none
  std::vector<std::string> targets;  // which layers: parts of their names ("qkv", "attn", "blocks.0.mlp")

  bool operator==(const LoraOptions&) const = default;
};

struct ModelOptions {
  std::string name = "cnn";                    // a model known to the catalogue of models
  std::string weights;                         // "" = random; a file, or the name of installed or pretrained weights
  Normalisation norm = Normalisation::kGroup;  // ResNets
  std::vector<int64_t> hidden;                 // MLP: widths of the hidden layers; empty = the model's default
  int64_t width = 0;                           // ViT: 0 = the named size's own value
  int64_t depth = 0;                           // ViT
  int64_t heads = 0;                           // ViT
  int64_t patch = 4;                           // ViT
  int64_t adapter = 0;                         // ViT: bottleneck of the adapter after each block; 0 = none
  double dropout = 0.0;
  bool freeze_backbone = false;       // train only adapters, projection and head
  LoraOptions lora;                   // train low-rank paths, adapters and head only
  std::vector<std::string> personal;  // name prefixes of parameters that never leave the client (e.g. "head.")

  bool operator==(const ModelOptions&) const = default;
};

// Keys that the chosen model does not have are errors, unless they say what is the default anyway.
ModelOptions read_model_options(settings::Section section);

// The keys that mean something for the chosen model.
nlohmann::json to_json(const ModelOptions& options);

}  // namespace sotto::models
