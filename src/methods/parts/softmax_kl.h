// The divergence of two weight vectors read as distributions.
#pragma once

#include <ATen/core/Tensor.h>

namespace sotto::methods {

// KL(softmax(a) ‖ softmax(b)) over all entries of two float tensors of equal size: one pass, in double precision,
// without overflow whatever the entries. At least 0; 0 for tensors without entries; NaN if an entry is not finite.
double softmax_kl(const at::Tensor& a, const at::Tensor& b);

}  // namespace sotto::methods
