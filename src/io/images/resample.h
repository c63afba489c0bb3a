// Resizing of images.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace sotto::io {

// A separable triangle filter whose support grows with the reduction: bilinear when enlarging, an antialiased weighted
// area average when shrinking. Built once per pair of sizes.
class Resampler {
 public:
  Resampler(int64_t in_height, int64_t in_width, int64_t out_height, int64_t out_width);

  // Resizes one channel: sample (row, column) of the input is in[(row · in_width + column) · step]. `out` is a plane.
  void run(const uint8_t* in, int64_t step, uint8_t* out) const;

 private:
  struct Tap {
    int64_t first = 0;
    std::vector<float> weights;
  };
  static std::vector<Tap> make_taps(int64_t in, int64_t out);

  int64_t in_height_;
  int64_t in_width_;
  std::vector<Tap> rows_;
  std::vector<Tap> columns_;
};

// uint8 [N, C, H, W] → [N, C, size, size], on all cores.
at::Tensor resize_images(const at::Tensor& images, int64_t size);

// uint8 [N, 1, H, W] → [N, 3, H, W]; three channels stay as they are.
at::Tensor as_rgb(const at::Tensor& images);

}  // namespace sotto::io
