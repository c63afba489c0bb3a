// What it takes to scale rows to a bound: shared by all that clip records one by one.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

namespace sotto::privacy {

// Scaling rounds; this much smaller, and a clipped vector's true norm is within its bound.
inline constexpr double kShrink = 1.0 - 1e-6;

// A UserError unless it is finite and at least 1e-9: squares of floats below 1e-38 are lost.
void require_clip_bound(const std::string& name, double bound);

// Rows [n, w] of floats or doubles → sums [n] in doubles. The order in which a row is added up follows from its width
// alone, so that a record's norm does not depend on how many others there are.
at::Tensor row_sums(const at::Tensor& rows);

}  // namespace sotto::privacy
