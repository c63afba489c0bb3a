#include "models/ops/choice.h"

#include <ATen/ATen.h>

namespace sotto::models::ops {

namespace {

// Beyond these a chunk of images or the weights no longer stay in the cache; at:: blocks for that, the direct form does
// not.
constexpr int64_t kMaxPixels = 64 * 64;
constexpr int64_t kMaxWeights = 64 * 1024;

}  // namespace

bool is_plain_float(const at::Tensor& tensor) {
  return tensor.defined() && tensor.device().is_cpu() && tensor.scalar_type() == at::kFloat &&
         tensor.layout() == at::kStrided;
}

std::optional<ConvShape> direct_conv_shape(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias,
                                           int64_t stride, int64_t padding, int64_t widest) {
  if (!is_plain_float(input) || !is_plain_float(weight) || input.dim() != 4 || weight.dim() != 4) return {};
  if (bias.defined() && (!is_plain_float(bias) || bias.dim() != 1 || bias.size(0) != weight.size(0))) return {};
  if (input.numel() == 0 || weight.numel() == 0 || weight.numel() > kMaxWeights) return {};
  if (weight.size(1) != input.size(1) || weight.size(2) != weight.size(3) || stride < 1 || padding < 0) return {};
  const ConvShape shape = {input.size(1),  input.size(2), input.size(3), weight.size(0),
                           weight.size(2), stride,        padding};
  // A 1×1 convolution is a plain matrix product.
  if (shape.kernel == 1 || shape.channels > widest || shape.filters > widest) return {};
  if (shape.height * shape.width > kMaxPixels) return {};
  if (shape.padded_height() < shape.kernel || shape.padded_width() < shape.kernel) return {};
  return shape;
}

std::optional<PoolShape> direct_pool_shape(int64_t channels, int64_t height, int64_t width, int64_t in_pitch,
                                           int64_t kernel, int64_t stride) {
  if (kernel < 1 || kernel * kernel >= kNoWinner || stride < 1 || height < kernel || width < kernel) return {};
  return PoolShape{height,   width,   (height - kernel) / stride + 1, (width - kernel) / stride + 1, kernel, stride,
                   channels, in_pitch};
}

}  // namespace sotto::models::ops
