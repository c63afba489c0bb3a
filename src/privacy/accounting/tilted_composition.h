// One direction of a composition on a grid, tilted by λ: the engine of pld.h.
#pragma once

#include "privacy/accounting/loss_grid.h"

#include <cstdint>
#include <span>
#include <vector>

namespace sotto::privacy {

struct CountedGrid {
  LossGrid grid;
  int64_t count;
};

struct Window {
  double tilt = 0;           // λ
  double bottom = 0;         // δ(ε) is bounded for ε ≥ bottom
  double height = 0;         // masses in [bottom, bottom + height) are used; what lies above is bounded
  double length = 0;         // the period: at least height, and more to keep what wraps round from below out of it
  double chernoff_tilt = 0;  // λ' that bounds what lies above
};

class TiltedComposition {
 public:
  TiltedComposition(std::span<const CountedGrid> grids, const Window& window);

  // Upper bound of ln δ(ε), for ε in [bottom, bottom + height).
  double log_delta(double epsilon) const;
  // The smallest ε ≥ bottom() at which the bound is at most log_delta; ∞ if there is none in the window.
  double epsilon(double log_delta) const;
  // -d ln δ / dε, roughly.
  double slope(double epsilon) const;
  double bottom() const { return static_cast<double>(first_) * spacing_ + shift_; }

 private:
  // The same without the shift for losses that are off the grid.
  double unshifted_log_delta(double epsilon) const;
  void compose(std::span<const CountedGrid> grids, const Window& window);

  double spacing_ = 0;
  double tilt_ = 0;
  int64_t first_ = 0;              // sums_[i] belong to loss (first_ + i)·spacing_
  double log_scale_ = 0;           // ln Π M^count - λ·(loss of first_), with its error
  double log_added_ = 0;           // ln of what is added to δ: revealed mass and what left the window
  double shift_ = 0;               // how much the true losses may exceed the grid's
  double rounding_ = 0;            // in units of e^log_scale at ε = loss of first_
  std::vector<double> sums_;       // Σ_{j≥i} p_j e^{-λ(j h)}
  std::vector<double> next_sums_;  // Σ_{j≥i} p_j e^{-λ(j h)} e^{-(j-i)h}
};

}  // namespace sotto::privacy
