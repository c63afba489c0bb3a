// Per-example clipping at the price of one batch: Σ_i clip(∇ℓ_i, C) from one forward and one backward pass.
//
// The backward pass computes gradients of layers' outputs only. From what went into a layer and the gradient of what
// came out follow each example's squared norm, without its gradient where that is cheaper, and then the weighted sum of
// all gradients as one product per layer (docs/per-example-clipping.md has the forms and their costs).
//
// The bound is a true one. Let h_i be example i's gradient as computed: for each parameter either the row of floats
// that was stored, or the exact product of the layer's recorded float inputs and output gradients. Its norm n_i is
// computed to a relative 4e-7: sums of squares of stored rows in double precision or, in store_weights, of at most 13
// rounded floats at a time (13·2⁻²⁴ on the square), Gram forms in double precision and from above (gram.h); the factor
// is c_i = min(1, C / (n_i (1 + 1e-6))), rounded towards zero to a float; multiplying by it in floats errs by at most
// 2⁻²⁴ relative to each entry. Hence ‖c_i h_i‖ ≤ C. With `normalise` c_i = C / (n_i (1 + 1e-6) + 0.01), which is smaller
// than C / (n_i (1 + 1e-6)), so that the same follows. (Squares below 1e-38 may be lost, which is why bounds below 1e-9
// are refused.) What remains is the rounding of the sum itself, Σ_i c_i h_i: floats within a pass of at most kMostSlots
// examples, doubles between passes. It is not any example's; a release charges for it (mechanisms/gaussian.cc).
//
// h_i depends on example i alone, to the last bit: every pass has the same number of slots, and slots without an example
// hold a blank that counts for nothing (slots.h).
//
// Contract with the model: every trainable parameter is used inside a models::Layer whose input and output have the
// examples along their first dimension, and the loss of an example depends on no other example. What can be checked of
// that is checked: parameters used outside of layers, layers without a batch dimension and batch statistics are
// UserErrors.
#pragma once

#include "models/flat.h"
#include "models/model.h"
#include "privacy/dpsgd/slots.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace sotto::privacy {

// Parameters that are clipped together, by the beginnings of their names.
struct ClipGroup {
  std::vector<std::string> prefixes;
  double bound = 0.0;
};

struct ClipOptions {
  double bound = 0.0;                      // C of all parameters jointly; not used if there are groups
  std::vector<ClipGroup> groups = {};      // every clipped parameter must be in exactly one
  bool joint = false;                      // one factor for all groups: Σ (norm_g/bound_g)² ≤ 1 for every example
  bool normalise = false;                  // gradients are scaled to the bound, not only down to it (chunk.h)
  bool shared_only = false;                // leave personal parameters and their gradients alone
  std::vector<std::string> left_out = {};  // parameters, by name, that are not clipped: their gradients are zero
  int64_t slots = 0;          // examples per pass, at most kMostSlots; 0 = chosen for batches of `usual_batch`
  int64_t usual_batch = 256;  // public: what a batch may be expected to hold
  bool batches_vary = false;  // batches are random, so that passes are better short
};

// All of it is private, the numbers of examples too.
struct ClippedSum {
  at::Tensor gradient;     // the sum: flat.gradient() itself, or doubles if there was more than one pass
  at::Tensor norms;        // [groups, B], double, before clipping; not finite where a gradient was not
  int64_t clipped = 0;     // examples scaled down in some group
  int64_t non_finite = 0;  // examples left out because their gradient was not finite
  double loss = 0.0;       // Σ of the finite losses
};

// Logits [B, classes] and labels [B] → losses [B].
using PerExampleLoss = std::function<at::Tensor(const at::Tensor& logits, const at::Tensor& labels)>;
at::Tensor cross_entropy(const at::Tensor& logits, const at::Tensor& labels);

class PerExampleClipper {
 public:
  // `flat` must be the model's. Both must outlive the clipper's use. Layers that have no per-example form are
  // UserErrors, as are bounds that are not at least 1e-9 and finite, and groups that do not cover the parameters once.
  PerExampleClipper(models::Model& model, const models::FlatParameters& flat, ClipOptions options);
  ~PerExampleClipper();
  PerExampleClipper(PerExampleClipper&&) noexcept;
  PerExampleClipper& operator=(PerExampleClipper&&) noexcept;

  // Overwrites flat.gradient() (its shared part if shared_only) with the clipped sum; the model's mode, values and
  // requires_grad stay as they are. After an exception the gradient is zero. An empty batch gives zero.
  ClippedSum sum(const at::Tensor& x, const at::Tensor& y, const PerExampleLoss& loss = cross_entropy);

  // The same for any losses: `losses(x, y)` computes those of some examples through the model's layers. Before the
  // first sum it is also called to see that layers keep examples apart and treat all slots alike.
  using Losses = std::function<at::Tensor(const at::Tensor& x, const at::Tensor& y)>;
  ClippedSum sum_losses(const at::Tensor& x, const at::Tensor& y, const Losses& losses);
  // Chooses the slots for the sums that follow, by made-up examples of these shapes, with the model as it is. Otherwise
  // the first sum does, and when that comes may be a secret.
  void prepare(const at::Tensor& x, const at::Tensor& y, const Losses& losses);
  // Of every pass; 0 before they are chosen.
  int64_t slots() const;

  // From the next sum on; see ClipOptions. Slots follow from it and from the model, not from batches met before.
  void expect_batches(int64_t usual_batch, bool batches_vary);
  // One bound per group, from the next sum on.
  void set_bounds(const std::vector<double>& bounds);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace sotto::privacy
