#include "io/images/resample.h"

#include "base/error.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>

namespace sotto::io {

std::vector<Resampler::Tap> Resampler::make_taps(int64_t in, int64_t out) {
  const double scale = static_cast<double>(in) / static_cast<double>(out);
  const double support = std::max(scale, 1.0);
  std::vector<Tap> taps(static_cast<size_t>(out));
  for (int64_t i = 0; i < out; ++i) {
    Tap& tap = taps[static_cast<size_t>(i)];
    const double centre = (static_cast<double>(i) + 0.5) * scale;
    tap.first = std::max<int64_t>(0, static_cast<int64_t>(std::floor(centre - support)));
    const int64_t last = std::min(in - 1, static_cast<int64_t>(std::ceil(centre + support)) - 1);
    double total = 0;
    for (int64_t j = tap.first; j <= last; ++j) {
      const double weight = std::max(0.0, 1.0 - std::abs(static_cast<double>(j) + 0.5 - centre) / support);
      tap.weights.push_back(static_cast<float>(weight));
      total += weight;
    }
    for (float& weight : tap.weights) weight = static_cast<float>(weight / total);
  }
  return taps;
}

Resampler::Resampler(int64_t in_height, int64_t in_width, int64_t out_height, int64_t out_width)
    : in_height_(in_height),
      in_width_(in_width),
      rows_(make_taps(in_height, out_height)),
      columns_(make_taps(in_width, out_width)) {}

void Resampler::run(const uint8_t* in, int64_t step, uint8_t* out) const {
  const auto width = static_cast<int64_t>(columns_.size());
  std::vector<float> narrowed(static_cast<size_t>(in_height_ * width));
  for (int64_t row = 0; row < in_height_; ++row) {
    const uint8_t* const line = in + row * in_width_ * step;
    for (int64_t column = 0; column < width; ++column) {
      const Tap& tap = columns_[static_cast<size_t>(column)];
      float sum = 0;
      for (size_t k = 0; k < tap.weights.size(); ++k) {
        sum += tap.weights[k] * static_cast<float>(line[(tap.first + static_cast<int64_t>(k)) * step]);
      }
      narrowed[static_cast<size_t>(row * width + column)] = sum;
    }
  }
  std::vector<float> sums(static_cast<size_t>(width));
  for (const Tap& tap : rows_) {
    std::fill(sums.begin(), sums.end(), 0.5F);
    for (size_t k = 0; k < tap.weights.size(); ++k) {
      const float* const line = narrowed.data() + (tap.first + static_cast<int64_t>(k)) * width;
      for (int64_t column = 0; column < width; ++column)
        sums[static_cast<size_t>(column)] += tap.weights[k] * line[column];
    }
    for (const float sum : sums) *out++ = static_cast<uint8_t>(std::clamp(sum, 0.0F, 255.0F));
  }
}

at::Tensor resize_images(const at::Tensor& images, int64_t size) {
  SOTTO_INVARIANT(images.scalar_type() == at::kByte && images.dim() == 4 && images.is_contiguous());
  const int64_t height = images.size(2);
  const int64_t width = images.size(3);
  if (height == size && width == size) return images;
  const Resampler resampler(height, width, size, size);
  at::Tensor resized = at::empty({images.size(0), images.size(1), size, size}, images.options());
  const auto* const in = images.data_ptr<uint8_t>();
  auto* const out = resized.data_ptr<uint8_t>();
  at::parallel_for(0, images.size(0) * images.size(1), 256, [&](int64_t begin, int64_t end) {
    for (int64_t plane = begin; plane < end; ++plane) {
      resampler.run(in + plane * height * width, 1, out + plane * size * size);
    }
  });
  return resized;
}

at::Tensor as_rgb(const at::Tensor& images) {
  return images.size(1) == 3 ? images : images.expand({-1, 3, -1, -1}).contiguous();
}

}  // namespace sotto::io
