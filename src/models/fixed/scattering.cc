#include "models/fixed/scattering.h"

#include "base/error.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

namespace sotto::models {
namespace {

constexpr int64_t kLeastPixels = 16;
constexpr int64_t kThirdOctave = 48;
// Morlet wavelets: a Gaussian of this deviation along the wave, longer across it, at this frequency.
constexpr double kDeviation = 0.8;
constexpr double kSlant = 0.5;
constexpr double kFrequency = 0.75 * std::numbers::pi;
constexpr int64_t kReach = 4;
// Beside a group's norm per cell, in pixel values from -1 to 1: what is fainter fades.
constexpr double kFaint = 1e-3;

// g(u)(e^{iξu₁} - β), β such that the sum is 0; scaled so that |ψ̂| is at most about 1.
at::Tensor make_wavelets() {
  constexpr int64_t kSide = 2 * kReach + 1;
  const at::Tensor filters = at::empty({2 * Scattering::kDirections, 1, kSide, kSide}, at::kDouble);
  for (int64_t direction = 0; direction < Scattering::kDirections; ++direction) {
    const double angle = std::numbers::pi * static_cast<double>(direction) / Scattering::kDirections;
    at::Tensor envelope = at::empty({kSide, kSide}, at::kDouble), wave = at::empty({kSide, kSide}, at::kDouble);
    for (int64_t i = 0; i < kSide; ++i) {
      for (int64_t j = 0; j < kSide; ++j) {
        const auto y = static_cast<double>(i - kReach), x = static_cast<double>(j - kReach);
        const double along = x * std::cos(angle) + y * std::sin(angle);
        const double across = (y * std::cos(angle) - x * std::sin(angle)) * kSlant;
        envelope[i][j] = std::exp(-(along * along + across * across) / (2 * kDeviation * kDeviation));
        wave[i][j] = kFrequency * along;
      }
    }
    envelope /= envelope.sum();
    at::Tensor real = envelope * wave.cos();
    real -= envelope * real.sum();
    filters[direction][0].copy_(real);
    filters[Scattering::kDirections + direction][0].copy_(envelope * wave.sin());
  }
  return filters.to(at::kFloat);
}

// Binomial, of even length: means of pairs stay where they are when an image is mirrored.
at::Tensor make_average() {
  const at::Tensor row = at::tensor({1.0F, 5.0F, 10.0F, 10.0F, 5.0F, 1.0F}) / 32;
  return at::outer(row, row).reshape({1, 1, 6, 6});
}

}  // namespace

Scattering::Scattering(int64_t channels, int64_t height, int64_t width)
    : channels_(channels),
      height_(height),
      width_(width),
      shrink_(std::max(height, width) > kMostPixels),
      wavelets_(make_wavelets()),
      average_(make_average()) {
  if (std::min(height, width) < kLeastPixels) {
    fail_user("features 'scatter' need images of at least {0}×{0} pixels, but they are {1}×{2}: set data.image_size",
              kLeastPixels, height, width);
  }
  height_ = std::min(height, kMostPixels);
  width_ = std::min(width, kMostPixels);
  octaves_ = std::min(height_, width_) < kThirdOctave ? 2 : 3;
  rows_ = height_ >> octaves_;
  columns_ = width_ >> octaves_;
}

int64_t Scattering::paths() const {
  const int64_t pairs = octaves_ * (octaves_ - 1) / 2;
  return channels_ * (1 + octaves_ * kDirections) + pairs * kDirections * kDirections;
}

// |x ⋆ ψ| in all directions: [B, C, H, W] → [B, C · directions, H, W].
at::Tensor Scattering::moduli(const at::Tensor& x) const {
  const at::Tensor planes = x.reshape({-1, 1, x.size(2), x.size(3)});
  const at::Tensor waves = at::conv2d(at::reflection_pad2d(planes, {kReach, kReach, kReach, kReach}), wavelets_);
  const auto parts = waves.chunk(2, 1);
  return (parts[0].square() + parts[1].square()).sqrt().reshape({x.size(0), -1, x.size(2), x.size(3)});
}

at::Tensor Scattering::halved(const at::Tensor& x, int64_t times) const {
  at::Tensor planes = x.reshape({-1, 1, x.size(2), x.size(3)});
  for (int64_t i = 0; i < times; ++i) {
    planes = at::conv2d(at::reflection_pad2d(planes, {2, 2, 2, 2}), average_, {}, 2);
  }
  return planes.reshape({x.size(0), x.size(1), planes.size(2), planes.size(3)});
}

at::Tensor Scattering::coefficients(const at::Tensor& x) const {
  const at::NoGradGuard no_grad;
  const at::Tensor image = shrink_ ? at::adaptive_avg_pool2d(x, {height_, width_}) : x;
  std::vector<at::Tensor> paths = {halved(image, octaves_)}, second;
  for (int64_t first = 0; first < octaves_; ++first) {
    const at::Tensor scaled = halved(image, first), found = moduli(scaled);
    paths.push_back(halved(found, octaves_ - first));
    const at::Tensor of_mean = channels_ == 1 ? found : moduli(scaled.mean(1, true));
    for (int64_t next = first + 1; next < octaves_; ++next) {
      second.push_back(halved(moduli(halved(of_mean, next - first)), octaves_ - next));
    }
  }
  paths.insert(paths.end(), second.begin(), second.end());
  return at::cat(paths, 1);
}

at::Tensor Scattering::features(const at::Tensor& x) const {
  const at::NoGradGuard no_grad;
  std::vector<int64_t> groups(static_cast<size_t>(octaves_), channels_ * kDirections);
  groups.insert(groups.begin(), channels_);
  groups.insert(groups.end(), static_cast<size_t>(octaves_ * (octaves_ - 1) / 2), kDirections * kDirections);
  const double faint = kFaint * std::sqrt(static_cast<double>(rows_ * columns_));
  std::vector<at::Tensor> scaled;
  for (const at::Tensor& group : coefficients(x).split_with_sizes(groups, 1)) {
    const at::Tensor flat = group.flatten(1);
    scaled.push_back(flat / (flat.square().sum(1, true) + faint * faint).sqrt());
  }
  return at::cat(scaled, 1) / std::sqrt(static_cast<double>(groups.size()));
}

}  // namespace sotto::models
