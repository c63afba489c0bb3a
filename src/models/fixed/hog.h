// Histograms of oriented gradients (N. Dalal and B. Triggs, CVPR 2005): fixed features of an image.
//
// Every pixel votes for the direction of its gradient, by its length, in the four cells around it; where there are
// several channels the steepest one votes. Blocks of 2 × 2 cells are scaled to norm 1, their entries capped at 0.2, and
// scaled again: what is left does not depend on contrast. A vector depends on its own image alone and has a norm of at
// most 1.
#pragma once

#include <cstdint>

namespace sotto::models {

// How an image is cut up.
struct HogShape {
  static constexpr int64_t kBins = 9;  // directions, over half a turn

  // For images of these sizes: about eight cells a side, none smaller than 4 pixels. A UserError if that leaves fewer
  // than two.
  HogShape(int64_t channels, int64_t height, int64_t width);

  int64_t channels, height, width;
  int64_t cell;           // pixels a side
  int64_t rows, columns;  // of cells; what is left of the image lies around them

  int64_t blocks() const { return (rows - 1) * (columns - 1); }
  int64_t floats() const { return blocks() * 4 * kBins; }
};

// pixels [channels, height, width] → features [shape.floats()]: block after block along rows, in each its four cells,
// in each kBins numbers.
void hog(const HogShape& shape, const float* pixels, float* features);

}  // namespace sotto::models
