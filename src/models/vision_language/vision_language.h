// Vision–language models as prompts see them: word vectors in front of class names on one side, images on the other.
//
// Both towers are frozen. Image features are computed once (data.features), text features again for every prompt.
#pragma once

#include "base/named_tensors.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace sotto::models {

// Nothing in it changes: one object serves all threads.
class VisionLanguage {
 public:
  virtual ~VisionLanguage() = default;

  virtual int64_t word_width() const = 0;     // of a word vector
  virtual int64_t feature_width() const = 0;  // of the space where texts and images meet
  virtual int64_t longest_text() const = 0;   // in tokens, with those that begin and end it
  virtual double temperature() const = 0;     // logits are cosines over this

  // Token ids: one that begins, those of the text, one that ends; a text that is too long loses its last words.
  virtual std::vector<int64_t> tokens(const std::string& text, int64_t longest) const = 0;
  virtual at::Tensor word_vectors(const std::vector<int64_t>& tokens) const = 0;  // [n, word_width]

  // Texts as word vectors [S, n, word_width], the first lengths[i] of which are text i: features [S, feature_width] of
  // length one. Gradients flow to the vectors.
  virtual at::Tensor text_features(const at::Tensor& vectors, const at::Tensor& lengths) const = 0;

  // What data.features gave [B, …] as features [B, m, feature_width] of length at most one: of the whole image first,
  // then of its patches where there are any. A UserError for records that are not such features.
  virtual at::Tensor image_features(const at::Tensor& records) const = 0;

  // The same for an image file's bytes.
  virtual at::Tensor encode_image(const std::string& bytes, const std::string& where) const = 0;
};

// "resnet50-minilm" (installed weights), the file of a CLIP archive, or "tiny": a small text tower of random weights
// that any features of `record_width` numbers go with, for trials and tests. Opened once per process. Unknown names and
// files that are no CLIP are UserErrors.
std::shared_ptr<const VisionLanguage> open_vision_language(const std::string& name, int64_t record_width);

// A class's name as words: underscores become spaces.
std::string words_of_class(const std::string& name);

// The classes of a task behind soft prompts: [begin] prompt name [end].
class PromptedClasses {
 public:
  // Prompts have `length` vectors; no room for them in the model's texts is a UserError. A very long name loses its
  // end.
  PromptedClasses(std::shared_ptr<const VisionLanguage> model, const std::vector<std::string>& class_names,
                  int64_t length);

  int64_t classes() const { return names_.size(0); }
  int64_t length() const { return length_; }
  const VisionLanguage& model() const { return *model_; }

  // prompts [J, length, word_width] → [J, classes, feature_width], rows of length one.
  at::Tensor text_features(const at::Tensor& prompts) const;

  // The vectors of "a photo of a", again and again until there are `length`.
  at::Tensor photo_prompt() const;
  // What the model says of the classes without any prompt learnt: features of "a photo of a NAME" [classes,
  // feature_width].
  at::Tensor zero_shot() const;

 private:
  std::shared_ptr<const VisionLanguage> model_;
  std::vector<std::string> class_names_;
  int64_t length_;
  at::Tensor begin_;    // [classes, 1, width]
  at::Tensor names_;    // [classes, longest, width]: names and ends
  at::Tensor lengths_;  // [classes], with begin and prompt
};

}  // namespace sotto::models
