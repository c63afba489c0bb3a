#include "models/script/free_layers.h"

#include <ATen/ATen.h>

namespace sotto::models {

at::Tensor FreeLinear::compute(const at::Tensor& input) {
  return at::linear(input, weight, bias);
}

at::Tensor FreePositions::compute(const at::Tensor& input) {
  return input + weight;
}

}  // namespace sotto::models
