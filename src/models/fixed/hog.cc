#include "models/fixed/hog.h"

#include "base/error.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <span>
#include <vector>

namespace sotto::models {
namespace {

constexpr int64_t kLeastCell = 4;
constexpr int64_t kCells = 8;
constexpr float kCap = 0.2F;
// Of a block, beside the mean length of its gradients in pixel values from -1 to 1: what is flatter than that fades.
constexpr float kFlat = 0.02F;

struct Gradient {
  float x = 0, y = 0;
  float square() const { return x * x + y * y; }
};

Gradient steepest(const HogShape& shape, const float* pixels, int64_t row, int64_t column) {
  const int64_t above = std::max<int64_t>(row - 1, 0), below = std::min(row + 1, shape.height - 1);
  const int64_t left = std::max<int64_t>(column - 1, 0), right = std::min(column + 1, shape.width - 1);
  Gradient best;
  for (int64_t channel = 0; channel < shape.channels; ++channel) {
    const float* plane = pixels + channel * shape.height * shape.width;
    const Gradient own{plane[row * shape.width + right] - plane[row * shape.width + left],
                       plane[below * shape.width + column] - plane[above * shape.width + column]};
    if (own.square() > best.square()) best = own;
  }
  return best;
}

// A position between two neighbours of a grid, and the share of the second.
struct Between {
  int64_t first;
  float share;
};

Between between(float position) {
  const float first = std::floor(position);
  return {static_cast<int64_t>(first), position - first};
}

// Cells as a pixel of this row or column sees them, their centres at 0, 1, …
Between place(int64_t pixel, int64_t pixels, int64_t cell, int64_t cells) {
  const int64_t margin = (pixels - cell * cells) / 2;
  return between((static_cast<float>(pixel - margin) + 0.5F) / static_cast<float>(cell) - 0.5F);
}

std::vector<float> cell_histograms(const HogShape& shape, const float* pixels) {
  constexpr auto kBinsPerRadian = static_cast<float>(HogShape::kBins / std::numbers::pi);
  std::vector<float> cells(static_cast<size_t>(shape.rows * shape.columns * HogShape::kBins));
  for (int64_t row = 0; row < shape.height; ++row) {
    const Between v = place(row, shape.height, shape.cell, shape.rows);
    for (int64_t column = 0; column < shape.width; ++column) {
      const Gradient gradient = steepest(shape, pixels, row, column);
      if (gradient.square() == 0) continue;
      const Between h = place(column, shape.width, shape.cell, shape.columns);
      const float length = std::sqrt(gradient.square()) / static_cast<float>(shape.cell * shape.cell);
      // Bin b is centred on b + ½.
      const Between bin = between(std::atan2(gradient.y, gradient.x) * kBinsPerRadian - 0.5F);
      const auto wrapped = [](int64_t b) { return (b % HogShape::kBins + HogShape::kBins) % HogShape::kBins; };
      const int64_t low = wrapped(bin.first), high = wrapped(bin.first + 1);
      for (int64_t i = 0; i < 2; ++i) {
        for (int64_t j = 0; j < 2; ++j) {
          const int64_t r = v.first + i, c = h.first + j;
          if (r < 0 || r >= shape.rows || c < 0 || c >= shape.columns) continue;
          const float vote = length * (i == 0 ? 1 - v.share : v.share) * (j == 0 ? 1 - h.share : h.share);
          float* histogram = cells.data() + (r * shape.columns + c) * HogShape::kBins;
          histogram[low] += vote * (1 - bin.share);
          histogram[high] += vote * bin.share;
        }
      }
    }
  }
  return cells;
}

// Returns the norm that it had.
float scale_to_one(std::span<float> block) {
  float square = 0;
  for (const float value : block) square += value * value;
  const float norm = std::sqrt(square);
  if (norm == 0) return 0;
  for (float& value : block) value /= norm;
  return norm;
}

void normalise(std::span<float> block, float share) {
  const float norm = scale_to_one(block);
  for (float& value : block) value = std::min(value, kCap);
  scale_to_one(block);
  const float faded = share * norm / std::sqrt(norm * norm + kFlat * kFlat);
  for (float& value : block) value *= faded;
}

}  // namespace

HogShape::HogShape(int64_t channel_count, int64_t image_height, int64_t image_width)
    : channels(channel_count), height(image_height), width(image_width) {
  const int64_t side = std::min(height, width);
  cell = std::max(kLeastCell, (side + kCells / 2) / kCells);
  rows = height / cell;
  columns = width / cell;
  if (side < 2 * cell) {
    fail_user("features 'hog' need images of at least {0}×{0} pixels, but they are {1}×{2}: set data.image_size",
              2 * kLeastCell, height, width);
  }
}

void hog(const HogShape& shape, const float* pixels, float* features) {
  const std::vector<float> cells = cell_histograms(shape, pixels);
  const float share = 1 / std::sqrt(static_cast<float>(shape.blocks()));
  for (int64_t row = 0; row + 1 < shape.rows; ++row) {
    for (int64_t column = 0; column + 1 < shape.columns; ++column) {
      const std::span block(features, 4 * HogShape::kBins);
      for (int64_t i = 0; i < 2; ++i) {
        const float* pair = cells.data() + ((row + i) * shape.columns + column) * HogShape::kBins;
        std::copy_n(pair, 2 * HogShape::kBins, features + i * 2 * HogShape::kBins);
      }
      normalise(block, share);
      features += block.size();
    }
  }
}

}  // namespace sotto::models
