// Vision transformers with a class token, frozen, from files with timm's names.
//
// A. Dosovitskiy et al., ICLR 2021. Sizes are read off the tensors; heads are 64 wide, norms have ε = 1e-6 and GELU is
// exact, as in all of timm's plain ViTs. Features are the class token behind the last norm.
#pragma once

#include "models/model.h"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

namespace sotto::models {

// The file that the name stands for: NAME.safetensors or NAME-….safetensors in the folder `weights` of $SOTTO_DATA's
// folders or of sotto's own; the first by name.
std::optional<std::filesystem::path> find_timm_vit(const std::string& name);

// Whether a file holds such a model.
bool is_timm_vit(const std::filesystem::path& file);

// Images of any size come in [-1, 1]; they are brought to `resized()` at their shorter side (bicubic), and the square in
// the middle is looked at.
class TimmVit : public Model {
 public:
  // A UserError if tensors are missing or do not fit each other.
  explicit TimmVit(const std::filesystem::path& file);

  at::Tensor features(const at::Tensor& x) override;
  at::Tensor classify(const at::Tensor& features) override;  // ImageNet's classes, if the file has its head
  int64_t feature_width() const override { return width_; }
  std::string head_name() const override { return "head"; }

  int64_t image_size() const { return image_size_; }
  int64_t resized() const;

 private:
  const at::Tensor& at_name(const std::string& name) const;
  at::Tensor linear(const std::string& name, const at::Tensor& x) const;
  at::Tensor norm(const std::string& name, const at::Tensor& x) const;
  at::Tensor pixels(const at::Tensor& x) const;
  // Reads the sizes, and checks that all tensors have them.
  void read_sizes(const std::string& where);

  NamedTensors weights_;
  int64_t width_ = 0, depth_ = 0, patch_ = 0, image_size_ = 0;
};

}  // namespace sotto::models
