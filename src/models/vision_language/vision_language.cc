#include "models/vision_language/vision_language.h"

#include "base/error.h"
#include "models/vision_language/aligned_towers.h"
#include "models/vision_language/clip_model.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <mutex>

namespace sotto::models {
namespace {

constexpr const char* kPhoto = "a photo of a";

std::shared_ptr<const VisionLanguage> open_new(const std::string& name, int64_t record_width) {
  if (name == "resnet50-minilm") return open_aligned_towers();
  if (name == "tiny") return tiny_clip_model(record_width);
  if (std::filesystem::is_regular_file(name)) return open_clip_model(name);
  fail_user("unknown encoder '{}': neither a file with a CLIP model nor one of resnet50-minilm, tiny", name);
}

// Rows of differing length as one tensor; zeros behind their ends.
at::Tensor padded(const std::vector<at::Tensor>& rows) {
  int64_t longest = 0;
  for (const at::Tensor& row : rows) longest = std::max(longest, row.size(0));
  std::vector<at::Tensor> same;
  same.reserve(rows.size());
  for (const at::Tensor& row : rows) same.push_back(at::constant_pad_nd(row, {0, 0, 0, longest - row.size(0)}));
  return at::stack(same);
}

}  // namespace

std::shared_ptr<const VisionLanguage> open_vision_language(const std::string& name, int64_t record_width) {
  static std::mutex mutex;
  static std::map<std::pair<std::string, int64_t>, std::shared_ptr<const VisionLanguage>> opened;
  const std::lock_guard lock(mutex);
  auto& model = opened[{name, record_width}];
  if (!model) model = open_new(name, record_width);
  return model;
}

std::string words_of_class(const std::string& name) {
  std::string words = name;
  std::replace(words.begin(), words.end(), '_', ' ');
  return words;
}

PromptedClasses::PromptedClasses(std::shared_ptr<const VisionLanguage> model,
                                 const std::vector<std::string>& class_names, int64_t length)
    : model_(std::move(model)), class_names_(class_names), length_(length) {
  const int64_t room = model_->longest_text() - length;
  if (length < 1 || room < 3) {
    fail_user("a prompt of {} vectors leaves no room for class names: the encoder reads {} tokens at once", length,
              model_->longest_text());
  }
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> begins, names;
  std::vector<int64_t> lengths;
  for (const std::string& name : class_names) {
    const at::Tensor vectors = model_->word_vectors(model_->tokens(words_of_class(name), room));
    begins.push_back(vectors.narrow(0, 0, 1));
    names.push_back(vectors.narrow(0, 1, vectors.size(0) - 1));
    lengths.push_back(vectors.size(0) + length);
  }
  begin_ = at::stack(begins);
  names_ = padded(names);
  lengths_ = at::tensor(lengths, at::kLong);
}

at::Tensor PromptedClasses::text_features(const at::Tensor& prompts) const {
  const int64_t many = prompts.size(0), width = prompts.size(2);
  const auto for_each_prompt = [&](const at::Tensor& part) {
    return part.unsqueeze(0).expand({many, classes(), part.size(1), width});
  };
  const at::Tensor vectors =
      at::cat({for_each_prompt(begin_), prompts.unsqueeze(1).expand({many, classes(), length_, width}),
               for_each_prompt(names_)},
              2);
  return model_->text_features(vectors.flatten(0, 1), lengths_.repeat({many})).view({many, classes(), -1});
}

at::Tensor PromptedClasses::photo_prompt() const {
  const std::vector<int64_t> tokens = model_->tokens(kPhoto, model_->longest_text());
  const at::Tensor words = model_->word_vectors({tokens.begin() + 1, tokens.end() - 1});
  return words.repeat({(length_ + words.size(0) - 1) / words.size(0), 1}).narrow(0, 0, length_).clone();
}

at::Tensor PromptedClasses::zero_shot() const {
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> texts;
  std::vector<int64_t> lengths;
  for (const std::string& name : class_names_) {
    texts.push_back(model_->word_vectors(
        model_->tokens(fmt::format("{} {}", kPhoto, words_of_class(name)), model_->longest_text())));
    lengths.push_back(texts.back().size(0));
  }
  return model_->text_features(padded(texts), at::tensor(lengths, at::kLong));
}

}  // namespace sotto::models
