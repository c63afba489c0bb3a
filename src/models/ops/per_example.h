// Convolutions whose backward pass tells the gradients of a batch's examples apart.
#pragma once

#include "models/ops/direct_conv.h"

#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

namespace sotto::models::ops {

// rows [N, conv_row_floats(shape)]: each example's gradient of weight and bias; squares [N]: the squared norms of the
// weights' part, to a relative 1e-6.
using UseConvRows =
    std::function<void(const ConvShape& shape, const at::Tensor& rows, const std::vector<double>& squares)>;

// The values of conv2d_relu_max_pool2d, or undefined where there is no fused form. A backward pass that asks for the
// gradient of `anchor`, any leaf, calls `use` and gives the input's gradient; anchor, weight and bias receive none.
at::Tensor conv2d_relu_max_pool2d_per_example(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias,
                                              int64_t stride, int64_t padding, int64_t pool_kernel, int64_t pool_stride,
                                              const at::Tensor& anchor, const UseConvRows& use);

}  // namespace sotto::models::ops
