// Operators that libtorch is slow at on a CPU for small models, behind libtorch's semantics.
//
// Each gives the values and gradients of the at:: operator it is named after (to float rounding), chooses the fastest form it
// has for the given shapes, and falls back to at:: otherwise (other devices, other types, other geometries).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace sotto::models::ops {

// input [N, C, H, W], weight [O, C, K, K], bias [O] or undefined; square stride and zero padding.
at::Tensor conv2d(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias, int64_t stride, int64_t padding);

at::Tensor max_pool2d(const at::Tensor& input, int64_t kernel, int64_t stride);

}  // namespace sotto::models::ops
