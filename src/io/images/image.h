// One decoded image.
#pragma once

#include <cstdint>
#include <vector>

namespace sotto::io {

// What an encoded image says of itself.
struct ImageInfo {
  int64_t width = 0;
  int64_t height = 0;
  int64_t channels = 0;  // 1 if it is grey, 3 if it has colours
};

struct Image {
  int64_t width = 0;
  int64_t height = 0;
  int64_t channels = 0;         // 1 or 3
  std::vector<uint8_t> pixels;  // row by row, channels interleaved
};

// More pixels than any photograph has: beyond it a file is taken for corrupt.
inline constexpr int64_t kMaxPixels = int64_t{1} << 28;

}  // namespace sotto::io
