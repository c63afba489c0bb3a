// The Gaussian mechanism, exactly.
//
// Releases with multipliers z_1 … z_m, adaptively chosen and not sampled, are as private as one Gaussian with
// μ² = Σ 1/z_i², and that one has δ(ε) = Φ(μ/2 - ε/μ) - e^ε Φ(-μ/2 - ε/μ). Everything is computed in extended precision
// with relative errors near 1e-17 in ln δ; results are then moved to the safe side by 4e-15 or less.
#pragma once

namespace sotto::privacy {

// ln δ(ε) for μ > 0, ε ≥ 0, rounded up; accurate however small δ is. Never above 0.
double gaussian_log_delta(double mu, double epsilon);

// The smallest ε ≥ 0 with δ(ε) ≤ e^log_delta, rounded up.
double gaussian_epsilon(double mu, double log_delta);

// The largest μ whose Gaussian is (ε, e^log_delta)-private, rounded down. For ε ≥ 0.
double gaussian_mu_at(double epsilon, double log_delta);

// The same with δ itself: gaussian_mu(1, 1e-5) = 0.268051….
double gaussian_mu(double epsilon, double delta);

// The unrounded ln δ(ε), for other closed forms to build on.
long double gaussian_log_delta_extended(long double mu, long double epsilon);

}  // namespace sotto::privacy
