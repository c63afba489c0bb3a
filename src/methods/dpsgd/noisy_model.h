// Clients that train with clipped batch gradients and add noise to the model they send: LaDP-FL and Full DP as printed.
#pragma once

#include "methods/method.h"

#include <string>

namespace sotto::methods {

struct NoisyModel {
  double batch_clip = 20.0;    // G_c: the bound of a batch's gradient
  double reported_norm = 0.0;  // the noise's norm in every upload, in place of the formula's; 0: the formula
  double least_norm = 0.0;     // R: layers whose weights have a smaller norm go without noise
  bool estimate = false;       // every layer's noise is divided by its P_j / B; otherwise P_j = B
  double kl_least = 1e-6;      // P_j is kept at or above this, for the formula divides by it,
  double kl_bound = 1.0;       // and at or below this (B)
  double decay = 1.0;          // noise at the end of a client's participations over that at their beginning
  double (*constant)(double epsilon, double delta) = nullptr;  // c/B: a layer's noise is c·Δf / (ε·P_j)
};

// Keys batch_clip, reported_norm.
NoisyModel read_noisy_model(settings::Section& section);

using NoisyModelReader = NoisyModel (*)(settings::Section&);

// Δf as the paper has it: 2ηE·G_c. It counts epochs where every step moves the model.
double printed_sensitivity(double lr, int64_t epochs, double batch_clip);

// Theorem 3 of LaDP-FL: c/B at the least that it allows.
double ladp_constant(double epsilon, double delta);
// The classical √(2 ln(1.25/δ)).
double classical_constant(double epsilon, double delta);

// Equations 17 to 19 of LaDP-FL for one upload of a client: q·√(2 ln(1.25/δ))·Δf/σ, with q = batch/records. Its figure
// of cumulative budgets adds these up over rounds. Of layers the one with the least noise is what an upload costs: ∞ if
// it has none.
double sequential_budget(double noise_stddev, double sensitivity, double delta, double batch_share);

// `sound`, with these clients as its variant = "paper".
MethodEntry with_noisy_model(MethodEntry sound, NoisyModelReader read);

}  // namespace sotto::methods
