// δ(ε) of any composition by a contour integral through the saddle point: discretisation-free, good to 1e-9 or better,
// but an estimate, never a certificate.
//
// With M(z) = E_P[e^{zL}] of the composed loss and any real λ > 0,
//   δ(ε) = (1/π) ∫₀^∞ Re[ M(λ+iw) e^{-(λ+iw)ε} / ((λ+iw)(λ+1+iw)) ] dw;
// at the λ where the integrand at w = 0 is least it oscillates least.
#pragma once

#include "privacy/accounting/loss_nodes.h"
#include "privacy/accounting/step.h"

#include <span>
#include <vector>

namespace sotto::privacy {

// The privacy loss of a whole composition in one direction.
class ComposedLoss {
 public:
  // `steps` are merged and not empty. A tail mass above 0 leaves out what a grid of that tail mass cuts off.
  ComposedLoss(std::span<const Steps> steps, Direction direction, double tail_mass = 0);

  // ln E[e^{λL}] with derivatives.
  Cumulant cumulant(double tilt) const;
  // One line per kind of step, good for |w| ≤ max_frequency.
  std::vector<LineOfMoments> moments_along(double tilt, double max_frequency) const;
  double largest() const { return largest_; }    // the largest finite loss, or ∞
  double revealed() const { return revealed_; }  // the probability that some step reveals everything
  // The λ > 0 at which M(λ) e^{-λε} / (λ(λ+1)) is least.
  double saddle_point(double epsilon) const;

 private:
  void prepare(double tilt) const;

  std::vector<Steps> steps_;
  Direction direction_;
  double tail_mass_;
  double largest_ = 0;
  double revealed_ = 0;
  mutable std::vector<LossNodes> nodes_;
  mutable double max_tilt_ = 0;
};

// The saddle-point approximation, without integrating: good enough to choose a tilt and a grid.
double rough_log_delta(const ComposedLoss& loss, double epsilon, double tilt);
double rough_epsilon(const ComposedLoss& loss, double log_delta);

// The integral in one direction. A UserError if it does not converge: composed losses with large atoms.
double saddle_log_delta(std::span<const Steps> steps, Direction direction, double epsilon);
// The ε ≥ 0 at which δ(ε) = delta; ∞ if there is none.
double saddle_epsilon(std::span<const Steps> steps, Direction direction, double delta);

}  // namespace sotto::privacy
