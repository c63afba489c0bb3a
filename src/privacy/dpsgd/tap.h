// A point of the graph where the gradient that flows back can be seen.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>

namespace sotto::privacy {

// The same values as `tensor`; when a backward pass towards `anchor` comes by, `use` is given the gradient. The anchor
// is any leaf that requires a gradient: it receives none, but a pass that asks for its gradient visits every tap, and
// computes nothing that no tap needs (no weight's gradient, if weights are not asked for).
at::Tensor tap(const at::Tensor& tensor, const at::Tensor& anchor, std::function<void(const at::Tensor&)> use);

}  // namespace sotto::privacy
