// Operators that libtorch is slow at on a CPU for small models, behind libtorch's semantics.
//
// Each gives the values and gradients of the at:: operators it is named after (to float rounding; ties and NaN
// included), chooses the fastest form it has for the given shapes, and falls back to at:: otherwise (other devices,
// other types, geometries at:: is good at). Gradients of gradients go through at::. Results are channels-last in memory
// wherever the fast form was taken, which the next operator likes best; inputs may have any layout. Wrong shapes are
// c10::Errors, as in at::.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace sotto::models::ops {

// input [N, C, H, W], weight [O, C, K, K], bias [O] or undefined; equal stride and zero padding on both axes.
at::Tensor conv2d(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias, int64_t stride,
                  int64_t padding);

at::Tensor max_pool2d(const at::Tensor& input, int64_t kernel, int64_t stride);

// max_pool2d(relu(conv2d(…))) in one pass each way: the convolution's output is never written to memory.
at::Tensor conv2d_relu_max_pool2d(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias,
                                  int64_t stride, int64_t padding, int64_t pool_kernel, int64_t pool_stride);

}  // namespace sotto::models::ops
