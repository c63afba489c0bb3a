// Noisy counts: integers with exact discrete Gaussian noise.
//
// Where one change moves one count by 1, two or three (Δ² = 1, 2, 3), the ledger charges the law's own privacy losses
// (Step::discrete_gaussian, one step per count); otherwise Δ²/2σ²-zCDP (Canonne, Kamath, Steinke, NeurIPS 2020). A value
// divided by a grid step and rounded is a count too. Every class is released, whether anybody holds it or not.
// Proof: docs/proofs/discrete-gaussian.md
#pragma once

#include "privacy/release.h"

#include <string>

namespace sotto::privacy {

class DiscreteGaussian {
 public:
  // `group` holds integers, bounded in ℓ2; noise of stddev·Δ … in units of 1. Δ = 0 (counts under replace-same-label)
  // means that the counts are public: they are released as they are.
  DiscreteGaussian(Group group, double noise_multiplier);

  double noise_stddev() const { return stddev_; }
  Event event(const Neighbours& neighbours) const;
  // The counts with noise, int64: they may be negative.
  Release randomise(Bounded&& counts, Receipt receipt, NoiseSource& source) const;

 private:
  Group group_;
  double stddev_;
};

}  // namespace sotto::privacy
