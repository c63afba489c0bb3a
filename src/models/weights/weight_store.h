// Weights by name: installed ones (resnet50, mobilenet-v2, minilm), ones made by `sotto pretrain`, or a file.
#pragma once

#include "models/options.h"

#include <filesystem>
#include <string>
#include <vector>

namespace sotto::models {

// The file that holds the named weights: an existing path as it is; otherwise the installed or pretrained weights of
// that name. Unknown or missing weights are a UserError that says how to get them.
std::filesystem::path find_weights(const std::string& name_or_path);

// tokenizer.json or vocab.txt beside the named weights, or else the one installed with minilm; a UserError if there is
// neither.
std::filesystem::path find_tokenizer(const std::string& name_or_path);

// What is needed to compute features by name: the model, and how large its images should be.
struct Backbone {
  ModelOptions model;      // name and weights filled in
  int64_t image_size = 0;  // what it was trained for, or a good compromise; 0 = does not matter
};

// The name of the model of a ViT with timm's names, which is no model of the catalogue.
inline constexpr const char* kTimmVit = "timm-vit";

// The same of somebody else's TorchScript archive.
inline constexpr const char* kScriptBackbone = "torchscript-backbone";

// "hog" and "scatter", which have no weights; "resnet50" or "resnet50-keras", "mobilenet-v2", "minilm", "vit-tiny" or another ViT whose file is installed (fixed/timm_vit.h), the name given to `sotto pretrain`, or the file of
// such a ViT, of a CLIP model or of any TorchScript module; "resnet50" and files with "+patches" behind them if features of patches are wanted too. Anything else is a
// UserError.
Backbone find_backbone(const std::string& name);
// Several of them, joined by "+".
std::vector<std::string> backbone_names(const std::string& features);

// Where `sotto pretrain` keeps weights, and the names that are there.
std::filesystem::path pretrained_folder();
std::vector<std::string> pretrained_names();

}  // namespace sotto::models
