#include "base/error.h"
#include "models/architectures/headed_model.h"

#include <ATen/ATen.h>

#include <fmt/format.h>

namespace sotto::models {
namespace {

// Convolution, ReLU and max-pooling a few times, then fully connected layers.
class ConvNet : public HeadedModel {
 public:
  ConvNet(const Blueprint& blueprint, std::vector<ConvStage> stages, const std::vector<int64_t>& hidden)
      : stages_(std::move(stages)) {
    const ImageShape image = image_shape(blueprint, 1);
    int64_t channels = image.channels, height = image.height, width = image.width;
    for (size_t i = 0; i < stages_.size(); ++i) {
      const ConvStage& stage = stages_[i];
      const Conv2d::Options options{channels, stage.out, stage.kernel, stage.stride, stage.padding};
      convolutions_.push_back(add<Conv2d>(*this, fmt::format("conv{}", i + 1), options, blueprint.init));
      channels = stage.out;
      height = size_after(stage, height);
      width = size_after(stage, width);
      if (height < 1 || width < 1)
        fail_user("model '{}' cannot fit images of {}×{} pixels: nothing is left after layer {}",
                  blueprint.options.name, image.height, image.width, i + 1);
    }
    int64_t features = channels * height * width;
    for (size_t i = 0; i < hidden.size(); ++i) {
      layers_.push_back(add<Linear>(*this, fmt::format("fc{}", i + 1), features, hidden[i], blueprint.init));
      features = hidden[i];
    }
    add_head(blueprint, features);
  }

  at::Tensor features(const at::Tensor& x) override {
    at::Tensor hidden = x;
    for (size_t i = 0; i < stages_.size(); ++i)
      hidden = conv_relu_max_pool(*convolutions_[i], hidden, {stages_[i].pool_kernel, stages_[i].pool_stride});
    hidden = hidden.flatten(1);
    for (const auto& layer : layers_) hidden = at::relu(layer->forward(hidden));
    return hidden;
  }

 private:
  static int64_t size_after(const ConvStage& stage, int64_t size) {
    const int64_t padded = size + 2 * stage.padding;
    if (padded < stage.kernel) return 0;
    const int64_t convolved = (padded - stage.kernel) / stage.stride + 1;
    return convolved < stage.pool_kernel ? 0 : (convolved - stage.pool_kernel) / stage.pool_stride + 1;
  }

  std::vector<ConvStage> stages_;
  std::vector<std::shared_ptr<Conv2d>> convolutions_;
  std::vector<std::shared_ptr<Linear>> layers_;
};

}  // namespace

std::shared_ptr<Model> make_conv_net(const Blueprint& blueprint, std::vector<ConvStage> stages,
                                     std::vector<int64_t> hidden) {
  return std::make_shared<ConvNet>(blueprint, std::move(stages), hidden);
}

}  // namespace sotto::models
