// The normal distribution far into its tail, in extended precision (64 bits of mantissa; relative errors below 1e-17).
#pragma once

namespace sotto::privacy {

// ln P(N(0,1) > x), for every finite x.
long double log_normal_tail(long double x);

// P(N(0,1) > x); 0 only where it underflows.
long double normal_tail(long double x);

// ln of the density.
long double log_normal_density(long double x);

// Mills' ratio R(x) = P(N > x) / density(x); overflows below x = -150.
long double mills_ratio(long double x);

// R(x) - R(x + width) without cancellation, for width ≥ 0.
long double mills_ratio_drop(long double x, long double width);

}  // namespace sotto::privacy
