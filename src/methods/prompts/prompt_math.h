// What prompt learning computes besides the towers: factors of a prompt, transport between prompts and patches, terms.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace sotto::methods {

struct Factors {
  at::Tensor u;  // [b, k], orthonormal columns
  at::Tensor v;  // [k, w], orthonormal rows
};

// One power iteration on P [b, w] from `start` [w, k]: u = orth(P·start), v = orth(Pᵀu)ᵀ. k ≤ min(b, w).
Factors factorise(const at::Tensor& prompt, const at::Tensor& start);

// u(uᵀPvᵀ)v, what rank k can hold of P.
at::Tensor low_rank_part(const at::Tensor& prompt, const Factors& factors);

// A prompt's gradient from those of its factors (Yu et al., 2021): (∇u)v + u(∇v) - uuᵀ(∇u)v, which is
// G - (I-uuᵀ)G(I-vᵀv) where ∇u = Gvᵀ and ∇v = uᵀG.
at::Tensor rebuild_gradient(const at::Tensor& of_u, const at::Tensor& of_v, const Factors& factors);

struct TransportOptions {
  double entropy = 0.1;
  double mass = 0.8;  // of the patches, at most 1: the rest need not be explained
  int64_t iterations = 100;
  double threshold = 1e-3;  // a record is done when its scalings move by less than this part
};

// Unbalanced optimal transport (FedOTP): plans of least Σ plan·cost - entropy·H(plan), where every prompt sends mass/J
// and every patch takes at most 1/m. cost and plan [B, C, J, m]. Every record is iterated on its own, so that its plan
// says nothing of the others in its batch.
at::Tensor transport_plans(const at::Tensor& cost, const TransportOptions& options);

// Text features [J, C, d] and image features [B, m, d], both of length one at most, as logits [B, C]: cosines of the
// whole image with the one prompt there is, or what transport between prompts and patches gains. The patches are those
// behind the whole image, or that one where there are none.
at::Tensor prompt_logits(const at::Tensor& text, const at::Tensor& images, double temperature,
                         const TransportOptions& options);

// The images' patches for transport, [B, m, d].
at::Tensor patches_of(const at::Tensor& images);

// FedPGP's contrastive term: the global prompt's text features [C, d] should be nearer to those it started from than to
// the personal ones. Mean over classes of -log softmax.
at::Tensor contrast_loss(const at::Tensor& global, const at::Tensor& start, const at::Tensor& personal,
                         double temperature);

}  // namespace sotto::methods
