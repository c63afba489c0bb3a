// One step's privacy loss on a grid, as a pair of distributions that is at least as easy to tell apart as the true one.
//
// The mass of every cell [kh, (k+1)h] is put on its two ends so that the P-mass and the Q-mass of the cell are both
// kept. The hockey-stick curve of the result, as a function of e^ε, is the chord interpolation of the true convex curve
// at the points e^{kh}: nowhere below it, equal on the grid, and no curve with losses on the grid is lower. The error
// is second order in h. Both masses at an end are integrals of positive functions by Gauss-Legendre quadrature, so they
// carry relative errors only, and are inflated by a bound on them.
#pragma once

#include "privacy/accounting/worst_pair.h"

#include <cstdint>
#include <vector>

namespace sotto::privacy {

struct LossGrid {
  double spacing = 0;
  int64_t first = 0;          // mass[i] lies at loss (first + i)·spacing
  std::vector<double> mass;   // under P
  double p_at_infinity = 0;   // P-mass counted as revealed: true infinite losses, and those above the grid
  double q_at_infinity = 0;   // the same when P and Q are swapped
  double p_below = 0;         // P-mass of losses below the grid: safe at any grid point from first + 2 on
  double q_above = 0;         // Q-mass of losses above the grid
  double position_error = 0;  // losses may be off by this much

  // P and Q swapped: the loss changes its sign.
  LossGrid swapped() const;
};

// Discretises the pair of `step` (record removed). At most `tail_mass` of P is lost above and of Q below the grid.
LossGrid discretise(const Step& step, double spacing, double tail_mass);

// How many grid points discretise() would use, so that a caller can keep within a limit.
double grid_points(const Step& step, double spacing, double tail_mass);

}  // namespace sotto::privacy
