// MobileNetV2 with batch norm folded into its convolutions, TensorFlow's SAME padding and ReLU6.
#include "models/architectures/headed_model.h"

#include <ATen/ATen.h>

#include <fmt/format.h>

namespace sotto::models {
namespace {

// TensorFlow's SAME: out = ⌈in/stride⌉, an odd pixel of padding goes to the right and the bottom.
at::Tensor pad_same(const at::Tensor& x, int64_t kernel, int64_t stride) {
  const auto padding = [&](int64_t size) {
    const int64_t out = (size + stride - 1) / stride;
    return std::max<int64_t>((out - 1) * stride + kernel - size, 0);
  };
  const int64_t height = padding(x.size(2)), width = padding(x.size(3));
  return at::constant_pad_nd(x, {width / 2, width - width / 2, height / 2, height - height / 2});
}

class SameConv {
 public:
  SameConv() = default;
  SameConv(torch::nn::Module& owner, const std::string& name, Conv2d::Options options, const at::Generator& init) {
    // With stride 1 the padding is the same on all sides, and the convolution can do it.
    options.padding = options.stride == 1 ? options.kernel / 2 : 0;
    conv_ = add<Conv2d>(owner, name, options, init);
  }
  explicit operator bool() const { return conv_ != nullptr; }
  at::Tensor operator()(const at::Tensor& x) const {
    const auto& options = conv_->options();
    return conv_->forward(options.stride == 1 ? x : pad_same(x, options.kernel, options.stride));
  }

 private:
  std::shared_ptr<Conv2d> conv_;
};

struct InvertedResidual {
  SameConv expand, depthwise, project;
  bool residual = false;

  at::Tensor operator()(const at::Tensor& x) const {
    const at::Tensor wide = expand ? at::relu6(expand(x)) : x;
    const at::Tensor y = project(at::relu6(depthwise(wide)));
    return residual ? x + y : y;
  }
};

struct Stage {
  int64_t expansion, out, blocks, stride;
};

constexpr Stage kStages[] = {{1, 16, 1, 1}, {6, 24, 2, 2},  {6, 32, 3, 2}, {6, 64, 4, 2},
                             {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};

class MobileNetV2 : public HeadedModel {
 public:
  explicit MobileNetV2(const Blueprint& blueprint) {
    colour_image_shape(blueprint, 32);
    const at::Generator& init = blueprint.init;
    stem_ = SameConv(*this, "Conv", {.in = 3, .out = 32, .kernel = 3, .stride = 2}, init);
    int64_t channels = 32;
    for (const Stage& stage : kStages)
      for (int64_t i = 0; i < stage.blocks; ++i) {
        add_block(channels, stage.expansion * channels, stage.out, i == 0 ? stage.stride : 1, init);
        channels = stage.out;
      }
    last_ = SameConv(*this, "Conv_1", {.in = channels, .out = 1280, .kernel = 1}, init);
    add_head(blueprint, 1280);
  }

  at::Tensor features(const at::Tensor& x) override {
    at::Tensor y = at::relu6(stem_(as_colour(x)));
    for (const InvertedResidual& block : blocks_) y = block(y);
    return at::relu6(last_(y)).mean({2, 3});
  }

 private:
  void add_block(int64_t in, int64_t wide, int64_t out, int64_t stride, const at::Generator& init) {
    const std::string name = blocks_.empty() ? "expanded_conv" : fmt::format("expanded_conv_{}", blocks_.size());
    InvertedResidual block;
    if (wide != in) block.expand = SameConv(*this, name + ".expand", {.in = in, .out = wide, .kernel = 1}, init);
    block.depthwise = SameConv(*this, name + ".depthwise",
                               {.in = wide, .out = wide, .kernel = 3, .stride = stride, .groups = wide}, init);
    block.project = SameConv(*this, name + ".project", {.in = wide, .out = out, .kernel = 1}, init);
    block.residual = stride == 1 && in == out;
    blocks_.push_back(std::move(block));
  }

  SameConv stem_, last_;
  std::vector<InvertedResidual> blocks_;
};

bool strip_suffix(std::string& name, std::string_view suffix) {
  if (!name.ends_with(suffix)) return false;
  name.resize(name.size() - suffix.size());
  return true;
}

}  // namespace

std::shared_ptr<Model> make_mobilenet_v2(const Blueprint& blueprint) {
  return std::make_shared<MobileNetV2>(blueprint);
}

// In the TensorFlow graph a convolution's scale is already folded into its kernel ("merged_input"), a depthwise one's
// is beside it
// ("BatchNorm.batchnorm.mul"); both shifts are in "BatchNorm.batchnorm.sub". Everything outside the feature extractor
// is dropped.
NamedTensors translate_mobilenet_v2(NamedTensors weights) {
  const std::string extractor = "FeatureExtractor.MobilenetV2.";
  if (std::none_of(weights.begin(), weights.end(), [&](const auto& w) { return w.name.starts_with(extractor); }))
    return weights;
  NamedTensors translated;
  for (const auto& weight : weights) {
    if (!weight.name.starts_with(extractor) || weight.name.find("layer_19") != weight.name.npos) continue;
    std::string name = weight.name.substr(extractor.size());
    if (strip_suffix(name, ".Conv2D.merged_input")) {
      translated.push_back({name + ".weight", weight.value});
    } else if (strip_suffix(name, ".BatchNorm.batchnorm.sub")) {
      translated.push_back({name + ".bias", weight.value});
    } else if (strip_suffix(name, ".depthwise_weights")) {
      const at::Tensor scale = find_tensor(weights, extractor + name + ".BatchNorm.batchnorm.mul");
      const bool fits = scale.defined() && scale.numel() == weight.value.size(0);
      translated.push_back({name + ".weight", fits ? weight.value * scale.view({-1, 1, 1, 1}) : weight.value});
    }
  }
  return translated;
}

}  // namespace sotto::models
