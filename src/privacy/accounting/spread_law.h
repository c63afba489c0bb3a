// Laws of sums of independent non-negative variables, as mean-preserving spreads on a grid of logarithms.
//
// Y is a spread of X if E[Y | X] = X; then E f(Y) ≥ E f(X) for every convex f (Jensen), and the same holds for sums,
// and for products of non-negative variables, in which X is replaced by Y independently of the rest. Every operation
// here spreads what it is given: a value between two grid points goes to both in the proportion that keeps the mean, one
// below the grid to its lowest point and 0, one above it to its highest point and "infinity": the limit of an ever less
// likely, ever larger value of which only the mean is left. A spread over cells of width h costs second order in h.
//
// All sums have positive terms. Their rounding is bounded in relative terms, products that underflow count as infinite.
#pragma once

#include <cstdint>
#include <vector>

namespace sotto::privacy {

struct SpreadLaw {
  double spacing = 0;
  int64_t first = 0;  // mass[i] is the probability of exp((first + i)·spacing)
  std::vector<double> mass;
  double at_zero = 0;         // probability of 0
  double at_infinity = 0;     // mean that went to infinity
  double relative_error = 0;  // the masses should be at most (1 + this) times as large
  double position_error = 0;  // logarithms of values may be off by this much

  int64_t end() const { return first + static_cast<int64_t>(mass.size()); }
};

// exp(N(-μ²/2, μ²) - log_divisor), which has mean 1/divisor. At most a share `tail` of the mean goes to infinity, and as
// much of the probability to 0.
SpreadLaw spread_lognormal(double mu, double log_divisor, double spacing, double tail);

// The sum of two independent variables on one grid; the result's grid is finer by the factor `refinement`.
SpreadLaw sum(const SpreadLaw& a, const SpreadLaw& b, int64_t refinement);
// The sum of two independent copies.
SpreadLaw sum_of_two(const SpreadLaw& a, int64_t refinement);

// Cuts ends off: what lies above the grid then has at most this mean, and what lies below at most this probability.
void trim(SpreadLaw& law, double mean, double probability);

// Spreads onto the grid of every other point.
void coarsen(SpreadLaw& law);
// The same law on a grid that is finer by a factor.
SpreadLaw refined(SpreadLaw law, int64_t factor);

}  // namespace sotto::privacy
