// Random allocation: in an epoch of t Gaussian releases every record is in one batch, drawn uniformly, independently of
// the others, and kept secret.
//
// With the record against without it, an epoch is at most as telling as the pair
//   P = (1/t) Σ_i N(e_i, z² I_t)  against  Q = N(0, z² I_t),
// whose likelihood ratio is R = (X_1 + … + X_t)/t with X_i independent under Q, ln X_i ~ N(-μ²/2, μ²), μ = 1/z. For
// epochs the R multiply. Both directions, E_Q[(R - e^ε)_+] and E_Q[(1 - e^ε R)_+], are convex in every X_i, so
// spreading the X_i and their partial sums over a grid (spread_law.h) only makes the pair easier to tell apart.
//
// Why the pair is the worst. Given the releases before it, step i of the true epoch has the likelihood ratio
// X_i = exp(⟨o, v⟩/z² - |v|²/(2z²)) if it holds the record, where v, of norm at most 1, is what the record adds given
// those releases, and o is N(0, z² I) under Q. It is lognormal of mean 1 and log-variance |v|²/z² ≤ μ². The full
// lognormal is that one times an independent lognormal of mean 1: a spread. From the last step of the last epoch
// backwards: with everything before it fixed, the functional is convex in X_i; replacing X_i by the full lognormal,
// independent of the past, does not lower its expectation, and leaves a function of the past that is convex in the
// factors and terms that are left. The proof in full, with its hypotheses: docs/proofs/random-allocation.md.
#pragma once

#include "privacy/accounting/loss_grid.h"

namespace sotto::privacy {

// Whether hiding the batch is worth accounting for: with less noise than 1/20 of the sensitivity it is not, and the epoch
// is best taken as one plain Gaussian step, which is a bound (an average is below its terms in the convex order).
bool allocation_matters(const Step& step);

// One epoch of `step` on a grid, with the record against without it. At most `tail_mass`, or 1e-120 if that is more, of P
// is lost above and of Q below the grid. Covers draws that give each batch a probability within 2⁻⁵² of 1/t.
// Answers are remembered for a while. Thread-safe.
LossGrid allocated_grid(const Step& step, double spacing, double tail_mass);

// A spacing that is good enough for guesses.
double rough_allocated_spacing(const Step& step);

// How many times the cost of one spread over cells of the grid an epoch pays.
double allocated_spreads(const Step& step);

}  // namespace sotto::privacy
