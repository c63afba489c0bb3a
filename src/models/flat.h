// A model's trainable parameters as one contiguous vector.
//
// After construction every trainable parameter of the model is a view into one flat tensor, shared parameters first,
// then personal ones, and its gradient is a view into another. So an optimiser's step, a broadcast, a clip or a sum is
// one pass over memory, and nothing is allocated per step: autograd accumulates into the gradient views in place.
#pragma once

#include "models/model.h"

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace sotto::models {

class FlatParameters {
 public:
  FlatParameters() = default;
  // Re-seats the model's parameters. The values stay valid after the model is gone, because tensors are shared.
  explicit FlatParameters(Model& model);

  const at::Tensor& values() const { return values_; }      // [shared + personal]
  const at::Tensor& gradient() const { return gradient_; }  // the same layout
  at::Tensor shared() const;
  at::Tensor personal() const;
  at::Tensor shared_gradient() const;

  void zero_gradient() const;

 private:
  at::Tensor values_;
  at::Tensor gradient_;
  int64_t shared_size_ = 0;
};

}  // namespace sotto::models
