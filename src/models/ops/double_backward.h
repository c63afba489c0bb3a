// Gradients that can be differentiated again: the operator is recomputed with at:: and its graph kept.
#pragma once

#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>

#include <vector>

namespace sotto::models::ops {

// True inside a backward pass that was started with create_graph.
inline bool wants_graph() {
  return at::GradMode::is_enabled();
}

// The gradients of forward(inputs) with respect to `inputs` (undefined for those that need none), with their graph.
template <typename Forward>
std::vector<at::Tensor> gradients_with_graph(const std::vector<at::Tensor>& inputs, const at::Tensor& output_gradient,
                                             const Forward& forward) {
  // Views, because an input may itself depend on another (a weight used in two layers), and that path is not ours.
  std::vector<at::Tensor> views, wanted;
  for (const at::Tensor& input : inputs) {
    views.push_back(input.view_as(input));
    if (input.requires_grad()) wanted.push_back(views.back());
  }
  const auto found = torch::autograd::grad({forward(views)}, wanted, {output_gradient}, true, true);
  std::vector<at::Tensor> gradients;
  for (size_t i = 0, next = 0; i < inputs.size(); ++i)
    gradients.push_back(inputs[i].requires_grad() ? found[next++] : at::Tensor());
  return gradients;
}

}  // namespace sotto::models::ops
