#include "models/projection.h"

#include "base/error.h"
#include "base/files.h"
#include "base/random.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <system_error>

namespace sotto::models {
namespace {

constexpr const char* kRandom = "random";

// The squares of one scale: noise of fewer pixels, enlarged.
at::Tensor noise_of_scale(int64_t count, int64_t channels, int64_t height, int64_t width, int64_t pixels,
                          at::Generator& generator) {
  const auto cells = [&](int64_t side) { return std::max<int64_t>(1, (side + pixels - 1) / pixels); };
  const at::Tensor coarse = at::normal(0.0, 1.0, {count, channels, cells(height), cells(width)}, generator);
  return at::upsample_bilinear2d(coarse, {height, width}, false);
}

}  // namespace

Projection fit_projection(const at::Tensor& features, int64_t dimensions) {
  const int64_t records = features.size(0), width = features.size(1);
  if (dimensions > width || (dimensions > 0 && dimensions >= records)) {
    fail_user("data.project is {}: {} public records of {} features have at most {} axes", dimensions, records, width,
              std::min(width, records - 1));
  }
  Projection projection{.mean = features.mean(0), .axes = {}};
  if (dimensions == 0) return projection;
  const at::Tensor centred = (features - projection.mean).to(at::kDouble);
  const at::Tensor covariance = centred.t().mm(centred) / static_cast<double>(records);
  const auto [variances, vectors] = at::linalg_eigh(covariance, "L");
  at::Tensor axes = vectors.narrow(1, width - dimensions, dimensions).flip(1);
  const at::Tensor largest = axes.gather(0, axes.abs().argmax(0, true));
  projection.axes = (axes * largest.sign()).to(features.scalar_type()).contiguous();
  return projection;
}

at::Tensor project(const Projection& projection, const at::Tensor& features) {
  const at::Tensor centred = features - projection.mean;
  if (!projection.axes.defined()) return centred;
  const at::Tensor laid = at::empty({centred.size(0), projection.axes.size(1)}, centred.options());
  const at::Tensor row = at::empty({1, centred.size(1)}, centred.options());
  for (int64_t i = 0; i < centred.size(0); ++i) {
    row.copy_(centred.narrow(0, i, 1));  // where memory is aligned as for any other row
    laid.narrow(0, i, 1).copy_(row.mm(projection.axes));
  }
  return laid;
}

std::optional<data::DataOptions> projection_data(const data::DataOptions& data) {
  if (data.project_on.empty() || data.project_on == kRandom) return std::nullopt;
  data::DataOptions options;
  options.name = data.project_on;
  std::error_code error;
  if (fs::exists(data.project_on, error)) {
    options.name = "custom";
    options.path = data.project_on;
  }
  options.features = data.features;
  options.image_size = data.image_size;
  return options;
}

at::Tensor random_images(int64_t count, int64_t channels, int64_t height, int64_t width) {
  at::Generator generator = RandomStream(1, "random-images").torch_generator();
  at::Tensor sum = at::zeros({count, channels, height, width});
  double squares = 0;
  for (int64_t pixels = 1; pixels <= std::max(height, width); pixels *= 2) {
    const double weight = std::sqrt(static_cast<double>(pixels));
    sum.add_(noise_of_scale(count, channels, height, width, pixels, generator), weight);
    squares += weight * weight;
  }
  return (sum.div_(std::sqrt(squares)).mul_(64).add_(128)).round_().clamp_(0, 255).to(at::kByte);
}

}  // namespace sotto::models
