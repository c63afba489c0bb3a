#include "models/fixed/timm_vit.h"

#include "base/error.h"
#include "base/files.h"
#include "data/search.h"
#include "models/layers.h"
#include "models/weights/weights.h"

#include <ATen/ATen.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace sotto::models {
namespace {

constexpr double kEps = 1e-6;
constexpr int64_t kHeadWidth = 64;
// A crop keeps this part of an image's shorter side.
constexpr double kCrop = 0.9;

std::string block(int64_t i, const char* part) {
  return fmt::format("blocks.{}.{}", i, part);
}

}  // namespace

std::optional<fs::path> find_timm_vit(const std::string& name) {
  for (const fs::path& root : data::search_roots()) {
    std::vector<fs::path> found;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(root / "weights", error)) {
      const std::string stem = entry.path().stem().string();
      if (entry.path().extension() == ".safetensors" && (stem == name || stem.starts_with(name + "-")) &&
          is_timm_vit(entry.path())) {
        found.push_back(entry.path());
      }
    }
    if (!found.empty()) return *std::min_element(found.begin(), found.end());
  }
  return std::nullopt;
}

bool is_timm_vit(const fs::path& file) {
  try {
    const NamedTensors weights = read_weights(file);
    return find_tensor(weights, "cls_token").defined() && find_tensor(weights, "blocks.0.attn.qkv.weight").defined();
  } catch (const UserError&) {
    return false;
  }
}

TimmVit::TimmVit(const fs::path& file) : weights_(read_weights(file)) {
  for (NamedTensor& tensor : weights_) tensor.value = tensor.value.to(at::kFloat);
  while (find_tensor(weights_, block(depth_, "attn.qkv.weight")).defined()) ++depth_;
  read_sizes(file.string());
}

void TimmVit::read_sizes(const std::string& where) {
  const auto require = [&](bool fits, const std::string& what) {
    if (!fits) fail_user("{}: no vision transformer as timm saves them: {}", where, what);
  };
  const auto shaped = [&](const std::string& name, const std::vector<int64_t>& shape) {
    const at::Tensor found = find_tensor(weights_, name);
    require(found.defined(), fmt::format("'{}' is missing", name));
    require(found.sizes() == shape,
            fmt::format("'{}' is {}, not {}", name, fmt::join(found.sizes(), "×"), fmt::join(shape, "×")));
  };
  const at::Tensor patches = find_tensor(weights_, "patch_embed.proj.weight");
  const at::Tensor positions = find_tensor(weights_, "pos_embed");
  require(depth_ > 0, "it has no blocks");
  require(patches.defined() && patches.dim() == 4 && patches.size(1) == 3 && patches.size(2) == patches.size(3),
          "'patch_embed.proj.weight' is no embedding of square colour patches");
  require(positions.defined() && positions.dim() == 3, "'pos_embed' is missing");
  width_ = patches.size(0);
  patch_ = patches.size(2);
  const auto side = static_cast<int64_t>(std::lround(std::sqrt(static_cast<double>(positions.size(1) - 1))));
  image_size_ = side * patch_;
  require(width_ % kHeadWidth == 0, fmt::format("its width {} is no multiple of {}", width_, kHeadWidth));
  const int64_t w = width_;
  shaped("pos_embed", {1, side * side + 1, w});
  shaped("cls_token", {1, 1, w});
  shaped("patch_embed.proj.bias", {w});
  for (int64_t i = 0; i < depth_; ++i) {
    for (const char* part : {"norm1.weight", "norm1.bias", "norm2.weight", "norm2.bias", "attn.proj.bias"}) {
      shaped(block(i, part), {w});
    }
    shaped(block(i, "attn.qkv.weight"), {3 * w, w});
    shaped(block(i, "attn.qkv.bias"), {3 * w});
    shaped(block(i, "attn.proj.weight"), {w, w});
    const at::Tensor wide = find_tensor(weights_, block(i, "mlp.fc1.weight"));
    require(wide.defined() && wide.dim() == 2, fmt::format("'{}' is missing", block(i, "mlp.fc1.weight")));
    shaped(block(i, "mlp.fc1.weight"), {wide.size(0), w});
    shaped(block(i, "mlp.fc1.bias"), {wide.size(0)});
    shaped(block(i, "mlp.fc2.weight"), {w, wide.size(0)});
    shaped(block(i, "mlp.fc2.bias"), {w});
  }
  shaped("norm.weight", {w});
  shaped("norm.bias", {w});
}

int64_t TimmVit::resized() const {
  return static_cast<int64_t>(static_cast<double>(image_size_) / kCrop);
}

const at::Tensor& TimmVit::at_name(const std::string& name) const {
  const auto found =
      std::find_if(weights_.begin(), weights_.end(), [&](const NamedTensor& tensor) { return tensor.name == name; });
  SOTTO_INVARIANT(found != weights_.end());
  return found->value;
}

at::Tensor TimmVit::linear(const std::string& name, const at::Tensor& x) const {
  return at::linear(x, at_name(name + ".weight"), at_name(name + ".bias"));
}

at::Tensor TimmVit::norm(const std::string& name, const at::Tensor& x) const {
  return at::layer_norm(x, {width_}, at_name(name + ".weight"), at_name(name + ".bias"), kEps);
}

at::Tensor TimmVit::pixels(const at::Tensor& x) const {
  const int64_t height = x.size(2), width = x.size(3), shorter = std::min(height, width);
  const auto scaled = [&](int64_t side) { return side == shorter ? resized() : side * resized() / shorter; };
  const at::Tensor colour = x.size(1) == 1 ? x.expand({x.size(0), 3, height, width}) : x;
  const at::Tensor large =
      at::_upsample_bicubic2d_aa(colour.contiguous(), {scaled(height), scaled(width)}, false).clamp(-1.0, 1.0);
  const auto first = [&](int64_t side) { return (side - image_size_) / 2; };
  return large.narrow(2, first(large.size(2)), image_size_).narrow(3, first(large.size(3)), image_size_);
}

at::Tensor TimmVit::features(const at::Tensor& x) {
  if (x.dim() != 4 || (x.size(1) != 1 && x.size(1) != 3)) {
    fail_user("a vision transformer needs grey or colour images, not records of {} dimensions", x.dim() - 1);
  }
  const int64_t heads = width_ / kHeadWidth;
  at::Tensor tokens =
      at::conv2d(pixels(x), at_name("patch_embed.proj.weight"), at_name("patch_embed.proj.bias"), patch_)
          .flatten(2)
          .transpose(1, 2);
  tokens = at::cat({at_name("cls_token").expand({x.size(0), 1, width_}), tokens}, 1) + at_name("pos_embed");
  for (int64_t i = 0; i < depth_; ++i) {
    const auto parts = linear(block(i, "attn.qkv"), norm(block(i, "norm1"), tokens)).chunk(3, -1);
    tokens = tokens + linear(block(i, "attn.proj"), attend(parts[0], parts[1], parts[2], heads));
    const at::Tensor wide = at::gelu(linear(block(i, "mlp.fc1"), norm(block(i, "norm2"), tokens)));
    tokens = tokens + linear(block(i, "mlp.fc2"), wide);
  }
  return norm("norm", tokens.select(1, 0));
}

at::Tensor TimmVit::classify(const at::Tensor& features) {
  if (!find_tensor(weights_, "head.weight").defined()) fail_user("this vision transformer has no classifier");
  return linear("head", features);
}

}  // namespace sotto::models
