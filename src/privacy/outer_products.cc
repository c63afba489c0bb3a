#include "privacy/outer_products.h"

#include "base/error.h"
#include "privacy/access.h"

#include <ATen/ATen.h>

#include <cmath>

namespace sotto::privacy {
namespace {

// As in clip_each; products of norms round once more.
constexpr double kShrink = 1.0 - 1e-6;

at::Tensor norms(const at::Tensor& rows) {
  return rows.square().sum(1, false, at::kDouble).sqrt();
}

}  // namespace

Bounded clip_outer_products(Contribution&& factors, const ClipRule& rule, Adjacency adjacency) {
  if (!(rule.bound > 0) || !std::isfinite(rule.bound)) {
    fail_user("the clipping bound of '{}' is {}; it must be a positive number", rule.name, rule.bound);
  }
  NamedTensors& values = Access::values(factors);
  SOTTO_INVARIANT(values.size() == 2 && values[0].value.dim() == 2 && values[1].value.dim() == 2);
  const at::Tensor left = values[0].value, right = values[1].value;
  SOTTO_INVARIANT(left.size(0) == right.size(0));
  const at::Tensor norm = norms(left) * norms(right);
  const at::Tensor factor = (rule.bound * kShrink / norm).clamp_max(1.0);
  const at::Tensor kept = at::isfinite(norm);
  const at::Tensor zero = at::zeros({}, left.options());
  const at::Tensor scaled = at::where(kept.unsqueeze(1), left * factor.to(left.scalar_type()).unsqueeze(1), zero);
  const at::Tensor sum = at::matmul(scaled.t(), at::where(kept.unsqueeze(1), right, zero));
  const Group group{rule.name, 1, sum.numel(), sum_sensitivity(rule.bound, adjacency)};
  NamedTensors bounded;
  bounded.push_back({rule.name, sum});
  return Access::bounded(std::move(bounded), {group}, Norm::kL2);
}

}  // namespace sotto::privacy
