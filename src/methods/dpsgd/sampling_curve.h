// How often a record may be sampled, by the curve that rPDP-FL fits to simulated costs (Liu et al., CCS 2024).
//
// "Simulation–CurveFitting": the cost of all steps is computed at some rates by Rényi orders, ε(q) = e^{aq + b} + c is
// fitted to it by least squares, and a budget's rate is read off its inverse. A fit is not a bound: what it gives a
// record may cost more than its budget, and the ledger says so.
#pragma once

#include <cstdint>

namespace sotto::methods {

struct SamplingCurve {
  double a = 0, b = 0, c = 0;

  double epsilon(double rate) const;
  // The rate of a budget, within the simulated ones: 0.01 to 1.
  double rate(double epsilon) const;
};

// `noise_multiplier` in units of the clipping bound, as the paper has it.
SamplingCurve fit_sampling_curve(double noise_multiplier, int64_t steps, double delta);

}  // namespace sotto::methods
