#include "methods/prototypes/dimension_score.h"

#include <ATen/ATen.h>

#include <cmath>

namespace sotto::methods {
namespace {

at::Tensor ranks(const at::Tensor& values) {
  const at::Tensor row = values.to(at::kDouble).unsqueeze(0);
  const at::Tensor column = values.to(at::kDouble).unsqueeze(1);
  const at::Tensor below = row.lt(column).sum(1).to(at::kDouble);
  const at::Tensor equal = row.eq(column).sum(1).to(at::kDouble);
  return below + (equal - 1) / 2;
}

// Each column's bin, by rank: int64 [n, d].
at::Tensor equal_bins(const at::Tensor& features, int64_t bins) {
  const int64_t n = features.size(0);
  return features.argsort(int64_t{0}).argsort(int64_t{0}).mul(bins).div(n, "floor").clamp_max(bins - 1);
}

}  // namespace

at::Tensor dimension_scores(const at::Tensor& features, const at::Tensor& labels, int64_t classes, double zeta) {
  const at::Tensor x = features.to(at::kDouble);
  const int64_t n = x.size(0);
  const at::Tensor counts = at::bincount(labels, {}, classes).to(at::kDouble);
  const auto present = counts.gt(0).sum().item<int64_t>();
  if (present < 2) return at::zeros({x.size(1)}, at::kDouble);
  const auto per_class = [&](const at::Tensor& rows) {
    return at::zeros({classes, x.size(1)}, at::kDouble).index_add_(0, labels, rows);
  };
  const at::Tensor means = per_class(x) / counts.clamp_min(1).unsqueeze(1);
  const at::Tensor grand = x.mean(0, true);
  const at::Tensor between = ((means - grand).square() * counts.unsqueeze(1)).sum(0) / static_cast<double>(present - 1);
  const at::Tensor within = (x - means.index_select(0, labels)).square().sum(0);
  return between / (n > present ? within / static_cast<double>(n - present) + zeta : at::full_like(within, zeta));
}

at::Tensor between_class_variance(const at::Tensor& prototypes, const at::Tensor& classes, int64_t all_classes) {
  const at::Tensor x = prototypes.to(at::kDouble);
  const at::Tensor counts = at::bincount(classes, {}, all_classes).to(at::kDouble);
  const at::Tensor held = counts.gt(0).nonzero().squeeze(1);
  if (held.numel() < 2) return at::zeros({x.size(1)}, at::kDouble);
  const at::Tensor sums = at::zeros({all_classes, x.size(1)}, at::kDouble).index_add_(0, classes, x);
  return (sums / counts.clamp_min(1).unsqueeze(1)).index_select(0, held).var(0);
}

at::Tensor mutual_information(const at::Tensor& features, const at::Tensor& labels, int64_t classes, int64_t bins) {
  const int64_t n = features.size(0), d = features.size(1);
  const at::Tensor cells = equal_bins(features, bins) * classes + labels.unsqueeze(1);
  const at::Tensor column = at::arange(d, at::kLong).unsqueeze(0) * (bins * classes);
  const at::Tensor joint = at::bincount((cells + column).flatten(), {}, d * bins * classes)
                               .view({d, bins, classes})
                               .to(at::kDouble)
                               .div_(static_cast<double>(n));
  const at::Tensor independent = joint.sum(2, true) * joint.sum(1, true);
  return at::xlogy(joint, joint / independent.clamp_min(1e-300)).sum({1, 2});
}

double rank_correlation(const at::Tensor& a, const at::Tensor& b) {
  const at::Tensor x = ranks(a) - ranks(a).mean();
  const at::Tensor y = ranks(b) - ranks(b).mean();
  return (x.dot(y) / (x.norm() * y.norm())).item<double>();
}

at::Tensor largest(const at::Tensor& scores, int64_t k) {
  return std::get<0>(std::get<1>(scores.topk(k)).sort());
}

}  // namespace sotto::methods
