// The choice of the largest scores by Gumbel noise: k picks of the exponential mechanism.
#pragma once

#include "privacy/release.h"

#include <string>

namespace sotto::privacy {

// Top-k of scores in [0, H], all of which any change may move: k picks without replacement, each taking a score s with a
// probability proportional to e^{s/scale} among those that are left; then the picks as a set. The same as adding Gumbel
// noise of this scale and taking the k largest. A pick is of bounded range 2H/scale, so that k of them cost 2kH/scale at
// most, as Laplace noise of this scale does, and at δ > 0 hardly more than one Gaussian of multiplier scale/(H√k):
// docs/proofs/top-k.md.
//
// Scores are rounded to multiples of H/2^20 and picks are drawn from random bits alone (noise/choice.h): probabilities are
// exact. Scores come from clamp_each.
class GumbelTopK {
 public:
  // The range of one pick is at most `pick_epsilon`. A UserError unless 1 ≤ k ≤ scores, and high and pick_epsilon are
  // positive and finite, the latter at least 1e-12.
  GumbelTopK(int64_t scores, double high, int64_t k, double pick_epsilon);

  double scale() const;
  Event event(const Neighbours& neighbours) const;
  // One tensor `indices`, int64 [k], ascending.
  Release randomise(Bounded&& scores, Receipt receipt, NoiseSource& source) const;

 private:
  double sensitivity() const;

  int64_t scores_;
  double high_;
  int64_t k_;
  uint64_t grid_scale_;  // of the noise, in multiples of H/2^20
};

}  // namespace sotto::privacy
