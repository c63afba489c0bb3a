// Bounding of per-record gradients that are outer products, without making them.
#pragma once

#include "privacy/bounded.h"

namespace sotto::privacy {

// A contribution of two tensors, left [n, a] and right [n, b]: record i's gradient is left_i ⊗ right_i, whose norm is
// ‖left_i‖·‖right_i‖. As clip_each of those n matrices under the one rule, whose name and bound are used: each scaled
// to norm ≤ bound, their sum [a, b] by one multiplication of matrices, in doubles. A record with a non-finite entry
// counts as zero.
//
// Proof: docs/proofs/noisy-descent.md
Bounded clip_outer_products(Contribution&& factors, const ClipRule& rule, Adjacency adjacency);

}  // namespace sotto::privacy
