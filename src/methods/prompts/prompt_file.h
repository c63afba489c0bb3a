// A learnt prompt as a file: what a prompt's provider hands to its users.
//
//   safetensors with one tensor "prompt" [J, b, w]; metadata: encoder, feature_width, classes (JSON), transport (JSON)
#pragma once

#include "base/named_tensors.h"
#include "methods/prompts/prompt_math.h"
#include "methods/run_settings.h"
#include "models/vision_language/vision_language.h"

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace sotto::methods {

struct PromptFile {
  std::string encoder;        // of open_vision_language
  int64_t feature_width = 0;  // of its image features
  std::vector<std::string> classes;
  TransportOptions transport;
  at::Tensor prompts;  // [J, b, w]
};

// Whether selected_weights of this run's method are a prompt.
bool holds_prompt(const RunSettings& spec, const NamedTensors& weights);
PromptFile prompt_file_of(const RunSettings& spec, const std::vector<std::string>& class_names, int64_t feature_width,
                          const NamedTensors& weights);

void write_prompt_file(const std::filesystem::path& path, const PromptFile& file);
// A file that is no prompt is a UserError.
PromptFile read_prompt_file(const std::filesystem::path& path);

// The prompt at work. A prompt that does not fit its encoder is a UserError.
class PromptClassifier {
 public:
  explicit PromptClassifier(const PromptFile& file);
  // Class probabilities [classes] of an image file's bytes.
  at::Tensor probabilities(const std::string& bytes, const std::string& where) const;

 private:
  std::shared_ptr<const models::VisionLanguage> model_;
  TransportOptions transport_;
  at::Tensor text_;
};

}  // namespace sotto::methods
