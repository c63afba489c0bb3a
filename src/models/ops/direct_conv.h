// Convolution of channels-last float images by the kernels of kernels.h, in chunks that stay in the cache.
//
// What happens to a chunk's output pixels is the caller's affair, so that activation and pooling can be fused: the
// forward pass hands them over, the backward pass asks for their gradients. Both run on libtorch's intra-op threads,
// and the result does not depend on how many there are.
#pragma once

#include <cstdint>
#include <functional>

namespace sotto::models::ops {

// Square kernels, equal stride and zero padding on all sides.
struct ConvShape {
  int64_t channels, height, width;
  int64_t filters, kernel, stride, padding;

  int64_t padded_height() const { return height + 2 * padding; }
  int64_t padded_width() const { return width + 2 * padding; }
  int64_t out_height() const { return (padded_height() - kernel) / stride + 1; }
  int64_t out_width() const { return (padded_width() - kernel) / stride + 1; }
  int64_t image_size() const { return height * width * channels; }
  int64_t out_pixels() const { return out_height() * out_width(); }
  // Floats from one output pixel to the next in the chunks handed over and asked for.
  int64_t out_pitch() const;
};

// pixels[(sample - first)·out_pixels + pixel, filter]; called from several threads for distinct samples.
using UsePixels = std::function<void(int64_t first, int64_t samples, const float* pixels)>;
using FillPixels = std::function<void(int64_t first, int64_t samples, float* pixels)>;

// weight [filters, channels, kernel, kernel]; bias [filters].
void conv_forward(const ConvShape& shape, int64_t samples, const float* images, const float* weight, const float* bias,
                  const UsePixels& use);

// Where the gradients go; null for those that are not wanted. Overwritten.
struct ConvGradients {
  float* images = nullptr;
  float* weight = nullptr;
  float* bias = nullptr;
  // [samples, conv_row_floats()]: every sample's own gradient of weight and bias, packed; and the squared norms of the
  // weights' (see Kernels::store_weights).
  float* rows = nullptr;
  double* row_squares = nullptr;
};

void conv_backward(const ConvShape& shape, int64_t samples, const float* images, const float* weight,
                   const FillPixels& fill, const ConvGradients& gradients);

// A packed row: the weight's part with room for round filters (whose floats are zero), then the bias's.
int64_t conv_row_floats(const ConvShape& shape);
int64_t conv_row_bias_offset(const ConvShape& shape);

// weight += the weight's part of a packed row.
void add_conv_row(const ConvShape& shape, const float* row, float* weight);

}  // namespace sotto::models::ops
