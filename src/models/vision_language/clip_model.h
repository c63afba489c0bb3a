// CLIP as a vision–language model, and its image tower as a backbone for cached features.
#pragma once

#include "models/model.h"
#include "models/vision_language/clip_network.h"
#include "models/vision_language/vision_language.h"

#include <filesystem>
#include <memory>

namespace sotto::models {

// Its tokenizer's merges lie beside the archive as bpe_simple_vocab_16e6.txt.gz or .txt; a model with 514 tokens has
// bytes for words and needs none.
std::shared_ptr<const VisionLanguage> open_clip_model(const std::filesystem::path& path);

// Random text tower for features of any width.
std::shared_ptr<const VisionLanguage> tiny_clip_model(int64_t record_width);

// The image tower as data.features uses it: features() gives [B, features], or [B, (1 + m)·features] with patches.
std::shared_ptr<Model> make_clip_backbone(const std::filesystem::path& path, bool patches);

}  // namespace sotto::models
