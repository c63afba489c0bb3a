// Exact discrete noise: integers, rational arithmetic, no error at all given ideal random bits.
//
// discrete_gaussian draws k with probability proportional to e^(-k²/2σ²), by rejection from a two-sided geometric
// distribution (Canonne, Kamath, Steinke 2020). Added to an integer query of sensitivity Δ it satisfies Δ²/2σ²-zCDP,
// as the continuous Gaussian does; other accounting of the continuous Gaussian does not carry over to it, and
// Step::discrete_gaussian has its own.
//
// These take about a microsecond each and are meant for counts. For tensors use gaussian.h.
#pragma once

#include "privacy/noise/noise_source.h"

#include <cstdint>
#include <span>

namespace sotto::privacy {

// floor(E·scale) for an exponential E: P(k) = (1-e^(-1/scale))·e^(-k/scale). scale > 0.
uint64_t geometric(uint64_t scale, NoiseSource& source);

// P(k) ∝ e^(-|k|/scale).
int64_t discrete_laplace(uint64_t scale, NoiseSource& source);

// UserError unless 1e-3 ≤ sigma ≤ 1e9.
int64_t discrete_gaussian(double sigma, NoiseSource& source);
void discrete_gaussian(std::span<int64_t> out, double sigma, NoiseSource& source);

}  // namespace sotto::privacy
