// CLIP: an image tower (ViT, or a ResNet with attention pooling) and a text transformer that meet in one space.
//
// Tensors have the names of the reference implementation, so that its archives load. Weights do not change after
// loading unless somebody trains them on purpose, so that one object serves all threads.
#pragma once

#include "base/named_tensors.h"

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <unordered_map>

namespace sotto::models {

struct ClipShape {
  int64_t features = 32;  // of the common space
  int64_t image_size = 32;
  int64_t vision_width = 32;
  int64_t vision_layers = 2;                     // ViT
  int64_t patch = 8;                             // ViT
  std::array<int64_t, 4> stages = {0, 0, 0, 0};  // ResNet: blocks of each stage; all 0 for a ViT
  int64_t context = 77;                          // tokens of the longest text
  int64_t vocabulary = 514;
  int64_t text_width = 32;
  int64_t text_layers = 2;

  bool resnet() const { return stages[0] > 0; }
  bool operator==(const ClipShape&) const = default;
};

class Clip {
 public:
  // Random weights.
  Clip(const ClipShape& shape, at::Generator init);
  // The file's weights: TorchScript archive, state dict or safetensors, half or single precision. The shape is read off
  // the tensors; whatever does not fit it is one UserError that names the tensors.
  static std::shared_ptr<Clip> load(const std::filesystem::path& path);

  const ClipShape& shape() const { return shape_; }
  // The model's own tensors, in the reference's names.
  const NamedTensors& weights() const { return weights_; }

  // Images [B, 3, image_size, image_size] as clip_pixels makes them → features of the image, then of its patches
  // [B, 1 + m, features], not scaled.
  at::Tensor image_features(const at::Tensor& pixels) const;
  at::Tensor word_vectors(const at::Tensor& ids) const {
    return at_name("token_embedding.weight").index_select(0, ids);
  }
  // Word vectors [S, n, text_width], the first lengths[i] of which are text i, and the last of those ends it →
  // [S, features], not scaled.
  at::Tensor text_features(const at::Tensor& vectors, const at::Tensor& lengths) const;
  // e^-logit_scale
  double temperature() const;

 private:
  void add(const std::string& name, at::Tensor value);
  void add_normal(const std::string& name, at::IntArrayRef shape, double stddev);
  void add_norm(const std::string& name, int64_t width);
  void add_linear(const std::string& name, int64_t in, int64_t out);
  void add_conv_norm(const std::string& name, const std::string& norm, int64_t in, int64_t out, int64_t kernel);
  void add_blocks(const std::string& prefix, int64_t width, int64_t layers);
  void add_vit();
  void add_resnet();

  const at::Tensor& at_name(const std::string& name) const;
  at::Tensor linear(const std::string& name, const at::Tensor& x) const;
  at::Tensor layer_norm(const std::string& name, const at::Tensor& x) const;
  at::Tensor conv_norm(const std::string& name, const std::string& norm, const at::Tensor& x, int64_t stride,
                       int64_t padding) const;
  at::Tensor blocks(const std::string& prefix, int64_t width, int64_t layers, at::Tensor x,
                    const at::Tensor& mask) const;
  at::Tensor vit(const at::Tensor& pixels) const;
  at::Tensor resnet(const at::Tensor& pixels) const;
  at::Tensor resnet_block(const std::string& name, const at::Tensor& x, int64_t stride) const;
  at::Tensor attention_pool(const at::Tensor& x) const;

  ClipShape shape_;
  at::Generator init_;
  NamedTensors weights_;
  std::unordered_map<std::string, at::Tensor> by_name_;
};

// Bytes of an image [3, height, width] of any size → [1, 3, size, size]: the shorter side brought to `size` by bicubic
// interpolation, the middle cut out, channels scaled as CLIP expects.
at::Tensor clip_pixels(const at::Tensor& image, int64_t size);
// Images that are already of the right size, as float32 in [-1, 1].
at::Tensor clip_pixels_of_batch(const at::Tensor& x);

}  // namespace sotto::models
