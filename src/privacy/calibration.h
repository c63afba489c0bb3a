// How much noise a budget asks for.
#pragma once

#include "privacy/neighbours.h"

#include <cstdint>
#include <optional>

namespace sotto::privacy {

// The smallest noise multiplier at which `steps` Gaussian steps, each touching a record with probability
// `sampling_rate` (Poisson), stay within (epsilon, delta); a thousandth of δ is left for the noise's finite precision.
// Exact without sampling, certified with it; answers are remembered. Thread-safe.
double noise_multiplier_for(double epsilon, double delta, int64_t steps, double sampling_rate, Adjacency adjacency);

// The same as papers print it: by Rényi orders 2 … 64 and the classical conversion, which cannot certify budgets below
// ln(1/δ)/63 at any noise: then nothing.
std::optional<double> printed_noise_multiplier(double epsilon, double delta, int64_t steps);

}  // namespace sotto::privacy
