// The certified accountant: upper bounds of δ(ε) and ε(δ) for any composition, by the privacy-loss distribution.
//
// Why the bound holds. (1) Each step's pair is replaced by one on a grid that is at least as easy to tell apart
// (loss_grid.h), and domination is kept under composition. (2) The composed masses are computed after an exponential
// tilt, p_k → p_k e^{λkh}/M: every term of δ(ε) = Σ p_k (1 - e^{ε-kh})_+ is then of ordinary size near ε, however small
// δ is. (3) The composition is circular with period N. What wraps round adds positive mass, so only the mass that left
// the window at the top can be missing: it is bounded by Chernoff, M(λ')e^{-λ'top}, and added. (4) Rounding of the
// transforms is bounded in norm (fourier.h), carried through the power of the spectrum term by term, and added; all
// other sums have positive terms and get their relative error bound on top. (5) Losses off the grid by rounding shift ε
// by at most the number of steps times that, which is added to ε. The larger of the two directions is reported.
//
// Why it is tight. Keeping P- and Q-mass of each cell costs T·h²(λ+1)/8 in ε at most to leading order; h is chosen to
// make that a 3·10⁻⁵ part of ε, unless the grid would exceed 2²² points.
#pragma once

#include "privacy/accounting/worst_pair.h"

#include <span>

namespace sotto::privacy {

// The smallest certified ε with δ(ε) ≤ delta; ∞ if there is none. Steps must be valid.
double pld_epsilon(std::span<const Steps> steps, double delta);

// A quick guess at ε(δ), to start searches from; no bound.
double guess_epsilon(std::span<const Steps> steps, double delta);

// A certified upper bound of ln δ(ε). Below ln 1e-280 it is reported as that.
double pld_log_delta(std::span<const Steps> steps, double epsilon);
// The same in one direction only.
double pld_log_delta(std::span<const Steps> steps, Direction direction, double epsilon);

}  // namespace sotto::privacy
