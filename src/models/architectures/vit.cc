// Vision transformer with timm's parameter names, patch-mean pooling and optional adapters.
#include "base/error.h"
#include "models/architectures/headed_model.h"

#include <ATen/ATen.h>

#include <fmt/format.h>

namespace sotto::models {
namespace {

constexpr double kEps = 1e-6;
constexpr double kInitStddev = 0.02;

// x + Up(Dropout(ReLU(Down x))); Up starts at zero, so that a fresh adapter is the identity.
struct Adapter {
  std::shared_ptr<Linear> down, up;
  std::shared_ptr<Dropout> dropout;

  at::Tensor operator()(const at::Tensor& x) const {
    return x + up->forward(dropout->forward(at::relu(down->forward(x))));
  }
};

struct Block {
  std::shared_ptr<LayerNorm> norm1, norm2;
  std::shared_ptr<Linear> qkv, proj, fc1, fc2;
  std::optional<Adapter> adapter;

  at::Tensor operator()(const at::Tensor& x, int64_t heads) const {
    const auto parts = qkv->forward(norm1->forward(x)).chunk(3, -1);
    at::Tensor y = x + proj->forward(attend(parts[0], parts[1], parts[2], heads));
    y = y + fc2->forward(at::gelu(fc1->forward(norm2->forward(y))));
    return adapter ? (*adapter)(y) : y;
  }
};

class Vit : public HeadedModel {
 public:
  Vit(const Blueprint& blueprint, const VitSize& size) : init_(blueprint.init) {
    const auto& options = blueprint.options;
    const int64_t width = options.width > 0 ? options.width : size.width;
    const int64_t depth = options.depth > 0 ? options.depth : size.depth;
    heads_ = options.heads > 0 ? options.heads : size.heads;
    const ImageShape image = image_shape(blueprint, 1);
    if (options.patch < 1 || image.height % options.patch != 0 || image.width % options.patch != 0)
      fail_user("model.patch {} does not divide images of {}×{} pixels: choose another patch or data.image_size",
                options.patch, image.height, image.width);
    if (width % heads_ != 0) fail_user("model.width {} is not a multiple of model.heads {}", width, heads_);
    if (options.adapter < 0) fail_user("model.adapter must not be negative, it is {}", options.adapter);
    const auto w = static_cast<double>(width);
    require_memory_for(blueprint, static_cast<double>(depth) * w * (12 * w + 2 * static_cast<double>(options.adapter)));

    const Conv2d::Options patches{.in = image.channels, .out = width, .kernel = options.patch, .stride = options.patch};
    patch_embed_ = add<Conv2d>(*this, "patch_embed.proj", patches, init_);
    const int64_t count = (image.height / options.patch) * (image.width / options.patch);
    positions_ = add<PositionEmbedding>(*this, "pos_embed", count, width, init_);
    for (int64_t i = 0; i < depth; ++i) add_block(fmt::format("blocks.{}", i), width, blueprint);
    norm_ = add<LayerNorm>(*this, "norm", width, kEps);
    add_head(blueprint, width);
  }

  at::Tensor features(const at::Tensor& x) override {
    at::Tensor tokens = positions_->forward(patch_embed_->forward(x).flatten(2).transpose(1, 2));
    for (const Block& block : blocks_) tokens = block(tokens, heads_);
    return norm_->forward(tokens).mean(1);
  }

 private:
  std::shared_ptr<Linear> linear(const std::string& name, int64_t in, int64_t out) {
    auto layer = add<Linear>(*this, name, in, out, init_);
    init_normal(layer->weight, kInitStddev, init_);
    const at::NoGradGuard no_grad;
    layer->bias.zero_();
    return layer;
  }

  void add_block(const std::string& name, int64_t width, const Blueprint& blueprint) {
    Block block;
    block.norm1 = add<LayerNorm>(*this, name + ".norm1", width, kEps);
    block.qkv = linear(name + ".attn.qkv", width, 3 * width);
    block.proj = linear(name + ".attn.proj", width, width);
    block.norm2 = add<LayerNorm>(*this, name + ".norm2", width, kEps);
    block.fc1 = linear(name + ".mlp.fc1", width, 4 * width);
    block.fc2 = linear(name + ".mlp.fc2", 4 * width, width);
    if (blueprint.options.adapter > 0) block.adapter = make_adapter(name + ".adapter", width, blueprint);
    blocks_.push_back(std::move(block));
  }

  Adapter make_adapter(const std::string& name, int64_t width, const Blueprint& blueprint) {
    Adapter adapter;
    adapter.down = add<Linear>(*this, name + ".down", width, blueprint.options.adapter, init_);
    adapter.dropout = add<Dropout>(*this, name + ".dropout", blueprint.options.dropout, generator_);
    adapter.up = add<Linear>(*this, name + ".up", blueprint.options.adapter, width, init_);
    const at::NoGradGuard no_grad;
    adapter.up->weight.zero_();
    adapter.up->bias.zero_();
    return adapter;
  }

  at::Generator init_;
  int64_t heads_ = 0;
  std::shared_ptr<Conv2d> patch_embed_;
  std::shared_ptr<PositionEmbedding> positions_;
  std::vector<Block> blocks_;
  std::shared_ptr<LayerNorm> norm_;
};

}  // namespace

std::shared_ptr<Model> make_vit(const Blueprint& blueprint, const VitSize& size) {
  return std::make_shared<Vit>(blueprint, size);
}

NamedTensors translate_vit(NamedTensors weights) {
  const bool class_token = std::erase_if(weights, [](const auto& w) { return w.name == "cls_token"; }) > 0;
  for (auto& weight : weights) {
    if (weight.name != "pos_embed") continue;
    weight.name = "pos_embed.weight";
    if (class_token && weight.value.dim() == 3) weight.value = weight.value.narrow(1, 1, weight.value.size(1) - 1);
  }
  return weights;
}

}  // namespace sotto::models
