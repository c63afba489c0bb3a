// Wavelet scattering of two orders (J. Bruna and S. Mallat, IEEE TPAMI 2013): fixed features of an image.
//
// An image is filtered by wavelets of eight directions at every octave, the moduli of that once more at every coarser
// octave, and all of it is averaged over cells of 2^octaves pixels. Octaves are steps of a pyramid, so that one set of
// small filters serves all of them. Colour: orders 0 and 1 of every channel, order 2 of their mean.
//
// A cell's entries of one order and octave are a group; over the image each group is scaled to the same norm, record by
// record. A vector depends on its own image alone and has a norm of at most 1.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace sotto::models {

class Scattering {
 public:
  static constexpr int64_t kDirections = 8;  // over half a turn
  static constexpr int64_t kMostPixels = 64;

  // For images of these sizes: two octaves, from 48 pixels a side on three. Larger images than kMostPixels a side are
  // averaged down to that. A UserError for images below 16 pixels.
  Scattering(int64_t channels, int64_t height, int64_t width);

  int64_t octaves() const { return octaves_; }
  int64_t rows() const { return rows_; }  // of cells
  int64_t columns() const { return columns_; }
  // Per cell: order 0, then order 1 by octave and direction, of every channel; then order 2 by both octaves, first and
  // second direction.
  int64_t paths() const;
  int64_t floats() const { return paths() * rows_ * columns_; }

  // x [B, channels, height, width] → [B, paths, rows, columns], before anything is scaled.
  at::Tensor coefficients(const at::Tensor& x) const;
  // x → [B, floats].
  at::Tensor features(const at::Tensor& x) const;

 private:
  at::Tensor moduli(const at::Tensor& x) const;
  at::Tensor halved(const at::Tensor& x, int64_t times) const;

  int64_t channels_, height_, width_;  // as they are worked on
  bool shrink_;
  int64_t octaves_, rows_, columns_;
  at::Tensor wavelets_;  // [2 directions, 1, k, k]: real parts, then imaginary ones
  at::Tensor average_;   // [1, 1, 6, 6]
};

}  // namespace sotto::models
