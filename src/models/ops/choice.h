// Which form of an operator to take, and the geometry the fast forms work on.
#pragma once

#include "models/ops/direct_conv.h"
#include "models/ops/kernels.h"

#include <ATen/core/Tensor.h>

#include <optional>

namespace sotto::models::ops {

// Up to how many channels and filters the direct convolution is taken: alone, and with its pooling, where it wins more.
// Wider networks are better off in at::'s convolutions from end to end, which are slower on channels-last images.
inline constexpr int64_t kWidestConv = 32;
inline constexpr int64_t kWidestBlock = 64;

// The direct convolution's geometry, or nothing where at:: must do it (or refuse it) or does it as fast.
std::optional<ConvShape> direct_conv_shape(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias,
                                           int64_t stride, int64_t padding, int64_t widest);

// Pooling of channels-last images whose pixels are in_pitch apart, or nothing where the windows do not fit.
std::optional<PoolShape> direct_pool_shape(int64_t channels, int64_t height, int64_t width, int64_t in_pitch,
                                           int64_t kernel, int64_t stride);

// A dense CPU tensor of floats.
bool is_plain_float(const at::Tensor& tensor);

}  // namespace sotto::models::ops
