#include "privacy/outer_products.h"

#include "base/error.h"
#include "privacy/access.h"
#include "privacy/row_bounds.h"

#include <ATen/ATen.h>

namespace sotto::privacy {
namespace {

// Squares of doubles: one factor may be tiny and the other huge.
at::Tensor norms(const at::Tensor& rows) {
  return row_sums(rows.square()).sqrt();
}

}  // namespace

Bounded clip_outer_products(Contribution&& factors, const ClipRule& rule, Adjacency adjacency) {
  require_clip_bound(rule.name, rule.bound);
  NamedTensors& values = Access::values(factors);
  SOTTO_INVARIANT(values.size() == 2 && values[0].value.dim() == 2 && values[1].value.dim() == 2);
  const at::Tensor left = values[0].value.to(at::kDouble), right = values[1].value.to(at::kDouble);
  SOTTO_INVARIANT(left.size(0) == right.size(0));
  const at::Tensor norm = norms(left) * norms(right);
  const at::Tensor factor = (rule.bound * kShrink / norm).clamp_max(1.0).unsqueeze(1);
  const at::Tensor kept = at::isfinite(norm).unsqueeze(1);
  const at::Tensor zero = at::zeros({}, at::kDouble);
  const at::Tensor sum = at::matmul(at::where(kept, left * factor, zero).t(), at::where(kept, right, zero));
  const Group group{rule.name, 1, sum.numel(), sum_sensitivity(rule.bound, adjacency)};
  NamedTensors bounded;
  bounded.push_back({rule.name, sum});
  return Access::bounded(std::move(bounded), {group}, Norm::kL2);
}

}  // namespace sotto::privacy
