// How much noise a budget asks for.
#pragma once

#include "privacy/neighbours.h"

#include <cstdint>
#include <optional>

namespace sotto::privacy {

// The smallest noise multiplier at which `steps` Gaussian steps, each touching a record with probability
// `sampling_rate` (Poisson), stay within (epsilon, delta); a thousandth of δ is left for the noise's finite precision.
// Exact without sampling, certified with it; answers are remembered. Thread-safe.
//
// With more than one batch a step is an epoch of random allocation: every record is in one of its batches, drawn
// uniformly and secretly (Step::allocated). Certified, and never more than with one batch. A UserError at sampling rates
// below 1.
double noise_multiplier_for(double epsilon, double delta, int64_t steps, double sampling_rate, Adjacency adjacency,
                            int64_t batches = 1);

// The same where each step is of a cohort of fixed size, this share of all, that is drawn in secret (Step::cohort). Never
// more than if cohorts were public.
double cohort_noise_multiplier_for(double epsilon, double delta, int64_t steps, double share, Adjacency adjacency);

// The largest rate, at most 1 and rounded down, at which `steps` Gaussian steps of this multiplier stay within
// (epsilon, delta) for a record that takes part in each with that probability (Poisson); of δ as much is kept as above.
// Never 0: a record that is seen with probability δ at most costs nothing. Certified, to a part in a thousand;
// remembered; thread-safe.
double sampling_rate_for(double epsilon, double delta, int64_t steps, double noise_multiplier, Adjacency adjacency);

// The largest ε of one pick (Step::bounded_range), rounded down, at which `picks` of them stay within (epsilon, delta)
// together with `steps` Gaussian steps of this multiplier; of δ as much is kept as above. Certified, to half a percent;
// remembered; thread-safe. A UserError if nothing is left for picks.
double pick_epsilon_for(double epsilon, double delta, int64_t picks, double noise_multiplier, int64_t steps);

// The first of these as papers print it: by Rényi orders 2 … 64 and the classical conversion, which cannot certify
// budgets below ln(1/δ)/63 at any noise: then nothing.
std::optional<double> printed_noise_multiplier(double epsilon, double delta, int64_t steps);

}  // namespace sotto::privacy
