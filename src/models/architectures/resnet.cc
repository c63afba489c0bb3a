#include "base/error.h"
#include "models/architectures/headed_model.h"

#include <ATen/ATen.h>

#include <fmt/format.h>

#include <cmath>

namespace sotto::models {
namespace {

constexpr int64_t kNormGroups = 32;
constexpr int64_t kLargestSmallImage = 64;

// A convolution without bias and the normalisation behind it.
struct ConvNorm {
  std::shared_ptr<Conv2d> conv;
  std::shared_ptr<Layer> norm;

  explicit operator bool() const { return conv != nullptr; }
  at::Tensor operator()(const at::Tensor& x) const { return norm->forward(conv->forward(x)); }
};

// Two 3×3 convolutions, or 1×1, 3×3, 1×1; the shortcut is empty where shapes already agree.
struct Block {
  std::vector<ConvNorm> path;
  ConvNorm shortcut;

  at::Tensor operator()(const at::Tensor& x) const {
    at::Tensor y = x;
    for (size_t i = 0; i + 1 < path.size(); ++i) y = at::relu(path[i](y));
    return at::relu(path.back()(y) + (shortcut ? shortcut(x) : x));
  }
};

class ResNet : public HeadedModel {
 public:
  ResNet(const Blueprint& blueprint, const ResNetSize& size)
      : init_(blueprint.init), norm_(blueprint.options.norm), bottleneck_(size.bottleneck) {
    const ImageShape image = image_shape(blueprint, 8);
    small_ = image.height <= kLargestSmallImage && image.width <= kLargestSmallImage;
    stem_ = small_
                ? conv_norm("conv1", "bn1", {.in = image.channels, .out = 64, .kernel = 3, .padding = 1})
                : conv_norm("conv1", "bn1", {.in = image.channels, .out = 64, .kernel = 7, .stride = 2, .padding = 3});
    int64_t channels = 64;
    for (int64_t stage = 0; stage < 4; ++stage)
      for (int64_t i = 0; i < size.blocks[stage]; ++i)
        add_block(fmt::format("layer{}.{}", stage + 1, i), channels, 64 << stage, stage > 0 && i == 0 ? 2 : 1);
    add_head(blueprint, channels, "fc");
  }

  at::Tensor features(const at::Tensor& x) override {
    at::Tensor y = at::relu(stem_(x));
    if (!small_) y = at::max_pool2d(y, {3, 3}, {2, 2}, {1, 1});
    for (const Block& block : blocks_) y = block(y);
    return y.mean({2, 3});
  }

 private:
  ConvNorm conv_norm(const std::string& conv_name, const std::string& norm_name, Conv2d::Options options) {
    options.bias = false;
    ConvNorm made{add<Conv2d>(*this, conv_name, options, init_), nullptr};
    const double fan_out = static_cast<double>(options.out * options.kernel * options.kernel);
    init_normal(made.conv->weight, std::sqrt(2.0 / fan_out), init_);
    if (norm_ == Normalisation::kBatch)
      made.norm = add<BatchNorm2d>(*this, norm_name, options.out);
    else
      made.norm = add<GroupNorm>(*this, norm_name, kNormGroups, options.out);
    return made;
  }

  void add_block(const std::string& name, int64_t& channels, int64_t width, int64_t stride) {
    const int64_t out = bottleneck_ ? 4 * width : width;
    const auto step = [&](int64_t number, const Conv2d::Options& options) {
      return conv_norm(fmt::format("{}.conv{}", name, number), fmt::format("{}.bn{}", name, number), options);
    };
    Block block;
    if (bottleneck_) {
      block.path = {step(1, {.in = channels, .out = width, .kernel = 1}),
                    step(2, {.in = width, .out = width, .kernel = 3, .stride = stride, .padding = 1}),
                    step(3, {.in = width, .out = out, .kernel = 1})};
    } else {
      block.path = {step(1, {.in = channels, .out = width, .kernel = 3, .stride = stride, .padding = 1}),
                    step(2, {.in = width, .out = width, .kernel = 3, .padding = 1})};
    }
    if (stride != 1 || channels != out)
      block.shortcut = conv_norm(name + ".downsample.0", name + ".downsample.1",
                                 {.in = channels, .out = out, .kernel = 1, .stride = stride});
    blocks_.push_back(std::move(block));
    channels = out;
  }

  at::Generator init_;
  Normalisation norm_;
  bool bottleneck_;
  bool small_ = false;
  ConvNorm stem_;
  std::vector<Block> blocks_;
};

}  // namespace

std::shared_ptr<Model> make_resnet(const Blueprint& blueprint, const ResNetSize& size) {
  return std::make_shared<ResNet>(blueprint, size);
}

}  // namespace sotto::models
