#include "report/t_sne.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

namespace sotto::report {
namespace {

constexpr int kExaggerated = 100;  // iterations in which attraction counts twelvefold
constexpr double kExaggeration = 12;

at::Tensor squared_distances(const at::Tensor& points) {
  const at::Tensor norms = points.square().sum(1, true);
  return (norms + norms.t() - 2 * points.mm(points.t())).clamp_min(0);
}

// Row i: how near the other points are to point i, with a width that gives every row the same perplexity.
at::Tensor neighbourhoods(const at::Tensor& distances, double perplexity) {
  const int64_t n = distances.size(0);
  const double entropy = std::log(perplexity);
  at::Tensor low = at::zeros({n, 1}, at::kDouble), high = at::full({n, 1}, INFINITY, at::kDouble);
  at::Tensor sharpness = 1 / distances.mean(1, true).clamp_min(1e-12);
  const at::Tensor others = 1 - at::eye(n, at::kDouble);
  at::Tensor near;
  for (int i = 0; i < 60; ++i) {
    near = (-distances * sharpness).exp() * others;
    const at::Tensor total = near.sum(1, true).clamp_min(1e-300);
    near = near / total;
    const at::Tensor found = total.log() + sharpness * (distances * near).sum(1, true);
    const at::Tensor too_wide = found > entropy;
    low = at::where(too_wide, sharpness, low);
    high = at::where(too_wide, high, sharpness);
    sharpness = at::where(at::isinf(high), sharpness * 2, (low + high) / 2);
  }
  return near;
}

}  // namespace

at::Tensor t_sne(const at::Tensor& points, double perplexity, int iterations) {
  const at::NoGradGuard no_grad;
  const int64_t n = points.size(0);
  if (n < 3) return at::arange(2 * n, at::kDouble).view({n, 2});
  const at::Tensor x = points.to(at::kDouble) - points.to(at::kDouble).mean(0, true);
  at::Tensor attraction = neighbourhoods(squared_distances(x), std::min(perplexity, static_cast<double>(n - 1) / 3));
  attraction = ((attraction + attraction.t()) / (2 * static_cast<double>(n))).clamp_min(1e-12);

  const at::Tensor axes = std::get<2>(at::linalg_svd(x, false)).narrow(0, 0, std::min<int64_t>(2, x.size(1)));
  at::Tensor y = at::constant_pad_nd(x.mm(axes.t()), {0, 2 - axes.size(0)});
  y = y / y.std().clamp_min(1e-12) * 1e-4;
  at::Tensor velocity = at::zeros_like(y), gain = at::ones_like(y);
  const double rate = std::max(50.0, static_cast<double>(n) / kExaggeration);
  const at::Tensor others = 1 - at::eye(n, at::kDouble);
  for (int i = 0; i < iterations; ++i) {
    const at::Tensor closeness = others / (1 + squared_distances(y));
    const at::Tensor repulsion = (closeness / closeness.sum()).clamp_min(1e-12);
    const at::Tensor pull = ((i < kExaggerated ? kExaggeration : 1.0) * attraction - repulsion) * closeness;
    const at::Tensor gradient = 4 * (y * pull.sum(1, true) - pull.mm(y));
    const at::Tensor against = gradient.sign().ne(velocity.sign());
    gain = at::where(against, gain + 0.2, gain * 0.8).clamp_min(0.01);
    velocity = (i < kExaggerated ? 0.5 : 0.8) * velocity - rate * gain * gradient;
    y = y + velocity;
    y = y - y.mean(0, true);
  }
  return y;
}

}  // namespace sotto::report
