// The ResNet-50 of early Keras: convolutions have biases, the stride of a stage is in its first 1×1 convolution, batch
// norm's ε is 1e-3, and images come as BGR bytes minus the ImageNet means.
#include "models/architectures/headed_model.h"

#include <ATen/ATen.h>

#include <fmt/format.h>

namespace sotto::models {
namespace {

constexpr double kEps = 1e-3;
constexpr double kMomentum = 0.01;
constexpr int64_t kStride = 32;  // pixels a side that a place of the last layer stands for

struct ConvNorm {
  std::shared_ptr<Conv2d> conv;
  std::shared_ptr<BatchNorm2d> norm;

  explicit operator bool() const { return conv != nullptr; }
  at::Tensor operator()(const at::Tensor& x) const { return norm->forward(conv->forward(x)); }
};

struct Block {
  ConvNorm a, b, c, shortcut;

  at::Tensor operator()(const at::Tensor& x) const {
    const at::Tensor y = c(at::relu(b(at::relu(a(x)))));
    return at::relu(y + (shortcut ? shortcut(x) : x));
  }
};

class KerasResNet50 : public HeadedModel {
 public:
  KerasResNet50(const Blueprint& blueprint, bool patches) : patches_(patches), init_(blueprint.init) {
    const ImageShape image = colour_image_shape(blueprint, kStride);
    stem_ = conv_norm("conv1", "bn_conv1", {.in = 3, .out = 64, .kernel = 7, .stride = 2, .padding = 3});
    const int64_t blocks[] = {3, 4, 6, 3};
    int64_t channels = 64;
    for (int64_t stage = 0; stage < 4; ++stage)
      for (int64_t i = 0; i < blocks[stage]; ++i) {
        const std::string name = fmt::format("{}{:c}", stage + 2, static_cast<char>('a' + i));
        add_block(name, channels, 64 << stage, stage > 0 && i == 0 ? 2 : 1);
      }
    means_ = at::tensor({103.939f, 116.779f, 123.68f}).view({1, 3, 1, 1});
    const auto places = [](int64_t pixels) { return (pixels + kStride - 1) / kStride; };
    add_head(blueprint, channels * (patches ? 1 + places(image.height) * places(image.width) : 1));
  }

  at::Tensor features(const at::Tensor& x) override {
    const at::Tensor bytes = (as_colour(x).flip(1) + 1.0) * 127.5 - means_.to(x.scalar_type());
    at::Tensor y = at::max_pool2d(at::relu(stem_(bytes)), {3, 3}, {2, 2}, {1, 1});
    for (const Block& block : blocks_) y = block(y);
    const at::Tensor whole = y.mean({2, 3});
    return patches_ ? at::cat({whole, y.flatten(2).transpose(1, 2).flatten(1)}, 1) : whole;
  }

 private:
  ConvNorm conv_norm(const std::string& conv_name, const std::string& norm_name, const Conv2d::Options& options) {
    return {add<Conv2d>(*this, conv_name, options, init_),
            add<BatchNorm2d>(*this, norm_name, options.out, kEps, kMomentum)};
  }

  void add_block(const std::string& name, int64_t& channels, int64_t width, int64_t stride) {
    const auto branch = [&](const std::string& suffix, const Conv2d::Options& options) {
      return conv_norm(fmt::format("res{}_branch{}", name, suffix), fmt::format("bn{}_branch{}", name, suffix),
                       options);
    };
    Block block;
    block.a = branch("2a", {.in = channels, .out = width, .kernel = 1, .stride = stride});
    block.b = branch("2b", {.in = width, .out = width, .kernel = 3, .padding = 1});
    block.c = branch("2c", {.in = width, .out = 4 * width, .kernel = 1});
    if (channels != 4 * width)
      block.shortcut = branch("1", {.in = channels, .out = 4 * width, .kernel = 1, .stride = stride});
    blocks_.push_back(std::move(block));
    channels = 4 * width;
  }

  bool patches_;
  at::Generator init_;
  ConvNorm stem_;
  std::vector<Block> blocks_;
  at::Tensor means_;
};

}  // namespace

std::shared_ptr<Model> make_keras_resnet50(const Blueprint& blueprint) {
  return std::make_shared<KerasResNet50>(blueprint, false);
}

std::shared_ptr<Model> make_keras_resnet50_patches(const Blueprint& blueprint) {
  return std::make_shared<KerasResNet50>(blueprint, true);
}

NamedTensors translate_keras_resnet50(NamedTensors weights) {
  const std::string classifier = "fc1000.";
  for (auto& weight : weights)
    if (weight.name.starts_with(classifier)) weight.name.replace(0, classifier.size(), "head.");
  return weights;
}

}  // namespace sotto::models
