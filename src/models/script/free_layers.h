// Layers whose parameters are registered somewhere else, under whatever name their owner gave them.
#pragma once

#include "models/layers.h"

#include <utility>

namespace sotto::models {

// y = x Wᵀ + b; the bias may be undefined.
class FreeLinear : public Layer {
 public:
  FreeLinear(at::Tensor of_weight, at::Tensor of_bias) : weight(std::move(of_weight)), bias(std::move(of_bias)) {}
  const at::Tensor weight, bias;

 protected:
  at::Tensor compute(const at::Tensor& input) override;
};

// x [B, n, width] + weight [1, n, width].
class FreePositions : public Layer {
 public:
  explicit FreePositions(at::Tensor of_weight) : weight(std::move(of_weight)) {}
  const at::Tensor weight;

 protected:
  at::Tensor compute(const at::Tensor& input) override;
};

}  // namespace sotto::models
