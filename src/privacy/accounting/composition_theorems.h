// Bounds that need nothing but each step's own (ε, δ) or concentrated divergence. Each refuses, with a UserError that
// says why, what it does not cover.
#pragma once

#include "privacy/accounting/step.h"

#include <span>

namespace sotto::privacy {

// zCDP: ρ = Σ 1/(2z²) for Gaussians and ε²/2 for pure steps; ε = ρ + 2√(ρ ln(1/δ)). No sampling.
double zcdp_epsilon(std::span<const Steps> steps, double delta);
double zcdp_log_delta(std::span<const Steps> steps, double epsilon);

// The classical rule of one Gaussian step, ε = √(2 ln(1.25/δ))/z. Its proof needs ε ≤ 1; refused above.
double classical_epsilon(std::span<const Steps> steps, double delta);
double classical_log_delta(std::span<const Steps> steps, double epsilon);

// Basic composition: (Σε_i, Σδ_i). Steps with a curve (Gaussians) are taken at equal shares of δ.
double basic_epsilon(std::span<const Steps> steps, double delta);

// Advanced composition for steps of different strength (Kairouz, Oh and Viswanath 2017, theorem 3.5, second bound):
// (ε, 1 - (1-δ')Π(1-δ_i)) with ε = Σ ε_i (e^{ε_i}-1)/(e^{ε_i}+1) + √(2 ln(1/δ') Σ ε_i²), or basic composition where
// that is less. Half of what is left of δ goes to the steps with a curve, if there are any.
double advanced_epsilon(std::span<const Steps> steps, double delta);

}  // namespace sotto::privacy
