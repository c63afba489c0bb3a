#include "data/transforms.h"

#include "base/error.h"
#include "base/random.h"
#include "base/text.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace sotto::data {
namespace {

constexpr int64_t kChunk = 256;       // images that exist as floats at a time
constexpr int64_t kMosaicCells = 8;   // a side, of a pixelated image
constexpr double kBlurWidth = 0.045;  // standard deviation, as a share of the image's height
constexpr double kNoiseStddev = 60.0;
constexpr double kContrast = 0.3;

// One chunk: float32 [n, C, H, W] with values 0 … 255, and its number.
struct Chunk {
  at::Tensor pixels;
  uint64_t number;
};

at::Tensor inverted(const Chunk& chunk) {
  return 255.0 - chunk.pixels;
}

at::Tensor rotated(const Chunk& chunk) {
  if (chunk.pixels.size(2) != chunk.pixels.size(3)) {
    fail_user("transform 'rotated' needs square images, these are {}×{}: set data.image_size", chunk.pixels.size(2),
              chunk.pixels.size(3));
  }
  return at::rot90(chunk.pixels, 1, {2, 3});
}

at::Tensor mirrored(const Chunk& chunk) {
  return chunk.pixels.flip(3);
}

// Every channel by the same kernel [h, w], both odd; borders repeat the last pixel. A sum of shifted images is several
// times faster than libtorch's depthwise convolution.
at::Tensor filtered(const at::Tensor& pixels, const at::Tensor& kernel) {
  const int64_t h = kernel.size(0) / 2;
  const int64_t w = kernel.size(1) / 2;
  const at::Tensor padded = at::replication_pad2d(pixels, {w, w, h, h});
  const auto taps = kernel.accessor<float, 2>();
  at::Tensor sum = at::zeros_like(pixels);
  for (int64_t y = 0; y < taps.size(0); ++y) {
    for (int64_t x = 0; x < taps.size(1); ++x) {
      if (taps[y][x] == 0.F) continue;
      sum.add_(padded.narrow(2, y, pixels.size(2)).narrow(3, x, pixels.size(3)), taps[y][x]);
    }
  }
  return sum;
}

at::Tensor edges(const Chunk& chunk) {
  const at::Tensor sobel = at::tensor({-1.F, 0.F, 1.F, -2.F, 0.F, 2.F, -1.F, 0.F, 1.F}).view({3, 3}) / 4.0;
  return at::hypot(filtered(chunk.pixels, sobel), filtered(chunk.pixels, sobel.t()));
}

at::Tensor blurred(const Chunk& chunk) {
  const double stddev = std::max(0.5, kBlurWidth * static_cast<double>(chunk.pixels.size(2)));
  const double radius = std::ceil(3.0 * stddev);
  at::Tensor kernel = at::exp(-0.5 * (at::arange(-radius, radius + 1.0, at::kFloat) / stddev).square());
  kernel /= kernel.sum();
  return filtered(filtered(chunk.pixels, kernel.view({1, -1})), kernel.view({-1, 1}));
}

at::Tensor pixelated(const Chunk& chunk) {
  const int64_t height = chunk.pixels.size(2);
  const int64_t width = chunk.pixels.size(3);
  const at::Tensor cells =
      at::adaptive_avg_pool2d(chunk.pixels, {std::min(height, kMosaicCells), std::min(width, kMosaicCells)});
  return at::upsample_nearest2d(cells, {height, width});
}

at::Tensor low_contrast(const Chunk& chunk) {
  return chunk.pixels * kContrast + 255.0 * (1.0 - kContrast) / 2.0;
}

at::Tensor noisy(const Chunk& chunk) {
  const at::Generator generator = RandomStream(0, "transform-noise", 0, chunk.number).torch_generator();
  return chunk.pixels + at::empty_like(chunk.pixels).normal_(0.0, kNoiseStddev, generator);
}

struct Transform {
  const char* name;
  at::Tensor (*apply)(const Chunk&);
};

constexpr const char* kPlain = "plain";
constexpr std::array kTransforms = {
    Transform{"inverted", inverted},         Transform{"rotated", rotated},
    Transform{"mirrored", mirrored},         Transform{"edges", edges},
    Transform{"blurred", blurred},           Transform{"pixelated", pixelated},
    Transform{"low-contrast", low_contrast}, Transform{"noisy", noisy},
};

const Transform& find_transform(const std::string& name) {
  const auto found =
      std::find_if(kTransforms.begin(), kTransforms.end(), [&](const auto& t) { return t.name == name; });
  if (found == kTransforms.end()) {
    const auto names = transform_names();
    fail_user("image transform '{}' is unknown{}: choose one of {}", name, did_you_mean(name, names),
              join(names, ", "));
  }
  return *found;
}

}  // namespace

std::vector<std::string> transform_names() {
  std::vector<std::string> names{kPlain};
  for (const Transform& transform : kTransforms) names.emplace_back(transform.name);
  return names;
}

at::Tensor apply_transform(const std::string& name, const at::Tensor& images) {
  if (!images.defined() || images.dim() != 4 || images.scalar_type() != at::kByte) {
    fail_user("image transform '{}' applies to images only: leave data.domains empty for other records", name);
  }
  if (name == kPlain) return images;
  const Transform& transform = find_transform(name);
  at::Tensor result = at::empty(images.sizes(), images.options());
  for (int64_t begin = 0; begin < images.size(0); begin += kChunk) {
    const int64_t count = std::min(kChunk, images.size(0) - begin);
    const Chunk chunk{images.narrow(0, begin, count).to(at::kFloat), static_cast<uint64_t>(begin / kChunk)};
    result.narrow(0, begin, count).copy_(transform.apply(chunk).round().clamp(0.0, 255.0));
  }
  return result;
}

}  // namespace sotto::data
