// Laplace noise, and the choice of the largest scores by it.
//
// Proof: docs/proofs/laplace.md
#pragma once

#include "privacy/noise/grid.h"
#include "privacy/release.h"

#include <string>

namespace sotto::privacy {

// Laplace noise of one scale on values whose ℓ1 sensitivity is bounded: ε = Δ₁/scale per release, δ = 0.
class LaplaceMechanism {
 public:
  // `group` must be bounded in ℓ1 (Norm::kL1). A scale that is not positive is a UserError.
  LaplaceMechanism(Group group, double scale);

  double scale() const { return grid_.noise_scale(); }
  double sensitivity() const { return sensitivity_; }  // with the grid's share
  Event event(const Neighbours& neighbours) const;
  Release randomise(Bounded&& bounded, Receipt receipt, NoiseSource& source) const;

 private:
  Group group_;
  NoiseGrid grid_;
  double sensitivity_;
};

// One-shot top-k: Laplace noise of scale 2kH/ε on scores in [0, H], all of which any change may move; then the k
// largest, as a set. (ε, 0) per release. Scores come from clamp_each.
class LaplaceTopK {
 public:
  LaplaceTopK(int64_t scores, double high, int64_t k, double epsilon);

  double scale() const { return grid_.noise_scale(); }
  Event event(const Neighbours& neighbours) const;
  // One tensor `indices`, int64 [k], ascending.
  Release randomise(Bounded&& scores, Receipt receipt, NoiseSource& source) const;

 private:
  int64_t scores_;
  double high_;
  int64_t k_;
  NoiseGrid grid_;
  double sensitivity_;
};

}  // namespace sotto::privacy
