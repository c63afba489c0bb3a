#include "base/error.h"
#include "models/architectures/headed_model.h"

#include <ATen/ATen.h>

#include <fmt/format.h>

#include <functional>
#include <numeric>

namespace sotto::models {
namespace {

double count_parameters(int64_t width, const std::vector<int64_t>& hidden, int64_t classes) {
  double in = static_cast<double>(width);
  double sum = 0;
  for (const int64_t layer : hidden) {
    sum += (in + 1) * static_cast<double>(layer);
    in = static_cast<double>(layer);
  }
  return sum + (in + 1) * static_cast<double>(classes);
}

class Mlp : public HeadedModel {
 public:
  Mlp(const Blueprint& blueprint, const std::vector<int64_t>& hidden) {
    const auto& shape = blueprint.task.record_shape;
    int64_t width = std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
    require_memory_for(blueprint, count_parameters(width, hidden, blueprint.task.classes));
    for (size_t i = 0; i < hidden.size(); ++i) {
      if (hidden[i] < 1) fail_user("model.hidden: a layer's width must be positive, not {}", hidden[i]);
      layers_.push_back(add<Linear>(*this, fmt::format("fc{}", i + 1), width, hidden[i], blueprint.init));
      width = hidden[i];
    }
    add_head(blueprint, width);
  }

  at::Tensor features(const at::Tensor& x) override {
    at::Tensor hidden = x.flatten(1);
    for (const auto& layer : layers_) hidden = at::relu(layer->forward(hidden));
    return hidden;
  }

 private:
  std::vector<std::shared_ptr<Linear>> layers_;
};

}  // namespace

std::shared_ptr<Model> make_mlp(const Blueprint& blueprint, std::vector<int64_t> hidden) {
  return std::make_shared<Mlp>(blueprint, hidden);
}

}  // namespace sotto::models
