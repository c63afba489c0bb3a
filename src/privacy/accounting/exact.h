// Closed forms: Gaussians that were not sampled, in any number and mixture; one step of any kind, sampled or not; and
// repeated pure or approximate steps (randomised response, the optimal composition).
#pragma once

#include "privacy/accounting/step.h"

#include <span>
#include <string>

namespace sotto::privacy {

// Why there is no closed form for these steps, or "".
std::string why_not_exact(std::span<const Steps> steps);

// ln δ(ε), rounded up. Only where why_not_exact() is empty.
double exact_log_delta(std::span<const Steps> steps, double epsilon);

// The smallest ε ≥ 0 with δ(ε) ≤ delta, rounded up; ∞ if there is none.
double exact_epsilon(std::span<const Steps> steps, double delta);

// √(Σ 1/z²) of steps that are all unsampled Gaussians, rounded up.
double gaussian_mu_of(std::span<const Steps> steps);

bool all_unsampled_gaussians(std::span<const Steps> steps);

}  // namespace sotto::privacy
