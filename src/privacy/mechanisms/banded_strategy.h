// How noise is spread over rounds: a lower triangular matrix C of which round t's noise is a row of C⁻¹Z.
//
// C is the square root of the matrix of running sums (N. Fichtenberger, M. Henzinger and J. Upadhyay, ICML 2023), cut to
// `band` diagonals (C. Choquette-Choo et al., NeurIPS 2023) and with every column scaled to norm 1. Rounds that are at
// least `band` apart share no row of C, so their columns are orthogonal: who takes part in no others moves C·x by
// √participations times what one participation may move, and no more. That is read off the matrix, not optimised for:
// any matrix of this shape would be as private. This one is in closed form and needs no search, so that server and plan
// have the same without sending it, and for running sums it is within a few percent of the best
// (docs/proofs/banded-noise.md).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace sotto::privacy {

class BandedStrategy {
 public:
  // 1 ≤ band ≤ rounds; a band of 1 is independent noise.
  BandedStrategy(int64_t rounds, int64_t band);

  int64_t rounds() const { return rounds_; }
  int64_t band() const { return static_cast<int64_t>(coefficients_.size()); }
  // C[row, column], both from 1; 0 outside of the band.
  double at(int64_t row, int64_t column) const;
  // All of it, in doubles.
  at::Tensor matrix() const;
  // The standard deviation of the noise in the sum of all rounds, where that of Z is 1: √rounds if it is independent.
  double noise_in_total() const;

 private:
  int64_t rounds_;
  std::vector<double> coefficients_;  // of the uncut columns, from the diagonal on
  std::vector<double> norms_;         // of columns cut to 1, 2, … of these
};

}  // namespace sotto::privacy
