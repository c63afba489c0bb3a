// A linear head on records as unit vectors: what few noisy steps can train.
#include "models/architectures/headed_model.h"

#include <ATen/ATen.h>

#include <cmath>
#include <functional>
#include <numeric>

namespace sotto::models {
namespace {

constexpr double kLeastNorm = 1e-12;
// Of the last feature, which is the same for all records and stands in for a bias: it takes a hundredth of a gradient's
// square, where a bias would take half.
constexpr double kConstant = 0.1;

// x ↦ W f(x). f takes the mean of a record's own entries from them, scales them, and adds a constant: its norm is 1. W
// starts at zero, so that all classes are alike, whatever the seed.
class LinearHead : public HeadedModel {
 public:
  explicit LinearHead(const Blueprint& blueprint) {
    const auto& shape = blueprint.task.record_shape;
    add_head(blueprint, 1 + std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>()));
    for (auto& parameter : named_parameters()) {
      parameter.value().detach().zero_();
      if (parameter.key().ends_with(".bias")) parameter.value().set_requires_grad(false);
    }
  }

  at::Tensor features(const at::Tensor& x) override {
    at::Tensor own = x.flatten(1);
    own = own - own.mean(1, true);
    own = own * (std::sqrt(1 - kConstant * kConstant) / own.norm(2, {1}, true).clamp_min(kLeastNorm));
    return at::cat({own, at::full({own.size(0), 1}, kConstant, own.options())}, 1);
  }
};

}  // namespace

std::shared_ptr<Model> make_linear_head(const Blueprint& blueprint) {
  return std::make_shared<LinearHead>(blueprint);
}

}  // namespace sotto::models
