// Which form of an operator to take, and the geometry the fast forms work on.
#pragma once

#include "models/ops/direct_conv.h"
#include "models/ops/kernels.h"

#include <ATen/core/Tensor.h>

#include <optional>

namespace sotto::models::ops {

// The direct convolution's geometry, or nothing where at:: must do it (or refuse it) or does it as fast.
std::optional<ConvShape> direct_conv_shape(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias,
                                           int64_t stride, int64_t padding);

// Pooling of channels-last images whose pixels are in_pitch apart, or nothing where the windows do not fit.
std::optional<PoolShape> direct_pool_shape(int64_t channels, int64_t height, int64_t width, int64_t in_pitch,
                                           int64_t kernel, int64_t stride);

// A dense CPU tensor of floats.
bool is_plain_float(const at::Tensor& tensor);

}  // namespace sotto::models::ops
