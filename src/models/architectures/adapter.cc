// A residual adapter on feature vectors: what a client trains on top of a frozen backbone whose features are cached.
#include "base/error.h"
#include "models/architectures/headed_model.h"

#include <ATen/ATen.h>

namespace sotto::models {
namespace {

constexpr int64_t kBottleneck = 64;

// x + Up(ReLU(Down x)); Up starts at zero, so that a fresh adapter is the identity.
class FeatureAdapter : public HeadedModel {
 public:
  explicit FeatureAdapter(const Blueprint& blueprint) {
    const auto& shape = blueprint.task.record_shape;
    if (shape.size() != 1) fail_user("model 'adapter' needs features: set data.features to a frozen backbone");
    const int64_t bottleneck = blueprint.options.adapter > 0 ? blueprint.options.adapter : kBottleneck;
    require_memory_for(blueprint, 2.0 * static_cast<double>(shape[0]) * static_cast<double>(bottleneck));
    down_ = add<Linear>(*this, "adapter.down", shape[0], bottleneck, blueprint.init);
    up_ = add<Linear>(*this, "adapter.up", bottleneck, shape[0], blueprint.init);
    {
      const at::NoGradGuard no_grad;
      up_->weight.zero_();
      up_->bias.zero_();
    }
    add_head(blueprint, shape[0]);
  }

  at::Tensor features(const at::Tensor& x) override { return x + up_->forward(at::relu(down_->forward(x))); }

 private:
  std::shared_ptr<Linear> down_, up_;
};

}  // namespace

std::shared_ptr<Model> make_feature_adapter(const Blueprint& blueprint) {
  return std::make_shared<FeatureAdapter>(blueprint);
}

}  // namespace sotto::models
