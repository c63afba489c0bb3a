#include "models/ops/ops.h"

#include <ATen/ATen.h>

namespace sotto::models::ops {

at::Tensor conv2d(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias, int64_t stride,
                  int64_t padding) {
  return at::conv2d(input, weight, bias, {stride, stride}, {padding, padding});
}

at::Tensor max_pool2d(const at::Tensor& input, int64_t kernel, int64_t stride) {
  return at::max_pool2d(input, {kernel, kernel}, {stride, stride});
}

}  // namespace sotto::models::ops
