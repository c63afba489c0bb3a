#include "methods/prompts/prompt_math.h"

#include "base/error.h"

#include <ATen/ATen.h>

namespace sotto::methods {
namespace {

at::Tensor orthonormal(const at::Tensor& columns) {
  return std::get<0>(at::linalg_qr(columns));
}

}  // namespace

Factors factorise(const at::Tensor& prompt, const at::Tensor& start) {
  SOTTO_INVARIANT(start.size(1) <= std::min(prompt.size(0), prompt.size(1)));
  Factors factors;
  factors.u = orthonormal(at::matmul(prompt, start));
  factors.v = orthonormal(at::matmul(prompt.t(), factors.u)).t().contiguous();
  return factors;
}

at::Tensor low_rank_part(const at::Tensor& prompt, const Factors& factors) {
  const auto& [u, v] = factors;
  return at::matmul(u, at::matmul(at::matmul(at::matmul(u.t(), prompt), v.t()), v));
}

at::Tensor rebuild_gradient(const at::Tensor& of_u, const at::Tensor& of_v, const Factors& factors) {
  const auto& [u, v] = factors;
  const at::Tensor left = at::matmul(of_u, v);
  return left + at::matmul(u, of_v) - at::matmul(u, at::matmul(u.t(), left));
}

at::Tensor transport_plans(const at::Tensor& cost, const TransportOptions& options) {
  const int64_t prompts = cost.size(2), patches = cost.size(3);
  const double sent = options.mass / static_cast<double>(prompts), taken = 1.0 / static_cast<double>(patches);
  const at::Tensor kernel = (-cost / options.entropy).exp();
  at::Tensor of_patches = at::ones_like(kernel.select(2, 0).unsqueeze(2));
  at::Tensor of_prompts = at::ones_like(kernel.select(3, 0).unsqueeze(3));
  at::Tensor active = at::ones({cost.size(0), 1, 1, 1}, at::kBool);
  for (int64_t i = 0; i < options.iterations && active.any().item<bool>(); ++i) {
    const at::Tensor next_prompts = sent / (kernel * of_patches).sum(3, true);
    const at::Tensor next_patches = (taken / (kernel * next_prompts).sum(2, true)).clamp_max(1.0);
    const at::Tensor change =
        ((next_prompts - of_prompts).abs() / next_prompts.abs()).flatten(1).amax(1).view({-1, 1, 1, 1});
    of_prompts = at::where(active, next_prompts, of_prompts);
    of_patches = at::where(active, next_patches, of_patches);
    active = active.logical_and(change.ge(options.threshold));
  }
  return kernel * of_prompts * of_patches;
}

at::Tensor patches_of(const at::Tensor& images) {
  return images.size(1) > 1 ? images.narrow(1, 1, images.size(1) - 1) : images;
}

at::Tensor prompt_logits(const at::Tensor& text, const at::Tensor& images, double temperature,
                         const TransportOptions& options) {
  if (text.size(0) == 1) return at::matmul(images.select(1, 0), text[0].t()) / temperature;
  const at::Tensor cosines = at::einsum("jcd,bmd->bcjm", {text, patches_of(images)});
  return (transport_plans(1.0 - cosines, options) * cosines).sum(at::IntArrayRef({2, 3})) / temperature;
}

at::Tensor contrast_loss(const at::Tensor& global, const at::Tensor& start, const at::Tensor& personal,
                         double temperature) {
  const at::Tensor gap = ((global * personal).sum(1) - (global * start).sum(1)) / temperature;
  return at::softplus(gap).mean();
}

}  // namespace sotto::methods
