// The worst pair of output distributions (P, Q) of one step: P with the record, Q without it. Whatever two neighbouring
// data sets do to the step's output, these two are at least as easy to tell apart, and so are compositions of them.
//
// The variable is the privacy loss t = ln(dP/dQ) of the step without sampling ("base loss"), whose law is
//   Gaussian: N(μ²/2, μ²) under P, μ = 1/multiplier;
//   Laplace:  atoms at ±1/b of mass ½ and ½e^{-1/b}, and density ¼ e^{(t-1/b)/2} between, under P;
//   pure:     atoms at ±ε of odds e^ε : 1 (randomised response); approximate: the same, and mass δ at +∞;
//   bounded range: density ½e^{(t-ε)/2}/(1-e^{-ε}) on [-ε, ε], under P;
//   discrete Gaussian: atoms at (j + ½)/σ² for all integers j, of a mass proportional to e^{-j²/2σ²} under P.
// Bounded range: a likelihood ratio in [e^{s-ε}, e^s] of mean 1 is at most as telling as the one that has its ends only,
// whose curve is (1 - ae^{-s} - e^{s-ε} + ae^{-ε})/(1-e^{-ε}) at a = e^{ε'}. Its largest value over s, at 2s = ε + ε', is
// (1 - e^{(ε'-ε)/2})²/(1-e^{-ε}): a curve that is convex in a and hence of a pair, the above (docs/proofs/top-k.md).
// Poisson sampling at rate q under add-remove makes of it P' = (1-q)Q + qP against Q: the loss becomes
// ln(1 - q + q e^t), and the hockey-stick curve q·δ(ln(1 + (e^ε - 1)/q)); so a pair that dominates stays dominating.
// The other direction, adding the record, is the same pair swapped. Random allocation has a pair of its own, see
// allocation.h.
//
// Under replace both sets hold a record that is sampled. For Gaussians the worst pair is
//   (1-q)N(0,z²) + qN(½,z²)  against  (1-q)N(0,z²) + qN(-½,z²).
// Proof: with v, v' the two contributions (norms at most ½), H_α = E_{x~N(v)}[(q - αq e^{X_a} - (1-q)(α-1) e^{X_b})_+],
// X_a, X_b the log likelihood ratios of N(v'), N(0) against N(v): Gaussian with means minus half their variances and
// covariances |v'-v|² ≤ 1, |v|² ≤ ¼, ⟨v'-v,-v⟩ ≤ ½. (q - s)_+ is convex in s and the coefficients are positive for
// α ≥ 1, so by Kahane's inequality the expectation grows with each covariance; the pair above attains all three limits
// at once. α < 1 follows by swapping, under which the pair is symmetric.
// For other mechanisms the curve q·δ(ln(1 + (e^ε - 1)/q)), extended to ε < 0 by the symmetry, bounds every pair: with
// M₁, M₁' the outputs holding either record and M₀ without, H_α = q·H_α'(M₁ ‖ (1-β)M₀ + βM₁') for α' = 1+(α-1)/q and
// some β in [0,1], and H is convex in its second argument.
//
// A cohort of fixed size, drawn without replacement, is of that last kind: where our client is not in it, somebody else
// is. All three outputs lie within Δ of each other under replace, within 2Δ where a client adds something or nothing, so
// that the base loss is a Gaussian's of multiplier z, or z/2 (docs/proofs/client-level.md).
//
// Proof: docs/proofs/poisson-batches.md
#pragma once

#include "privacy/accounting/step.h"

#include <vector>

namespace sotto::privacy {

enum class Direction { kRemove, kAdd };

// True if both directions are the same, so that one is enough.
bool is_symmetric(const Step& step);

// The law of the base loss under P.
struct BaseLoss {
  struct Atom {
    double loss = 0;
    double p_mass = 0;
    double q_mass = 0;
  };

  bool has_density = false;
  bool gaussian = false;
  double mu = 0;         // Gaussian
  double highest = 0;    // Laplace, pure and bounded range: losses lie in [-highest, highest]
  double revealed = 0;   // mass at +∞ under P and at -∞ under Q
  double log_scale = 0;  // of the density
  std::vector<Atom> atoms;

  double log_density(double loss) const;
};

// Not for discrete Gaussians, whose atoms are LatticeLoss.
BaseLoss base_loss(const Step& step);

// ln(1 - q + q e^t), exact in relative terms, and its inverse, the same near 0. The inverse of what is not above
// ln(1-q) is -∞.
double sampled_loss(double base, double sampling_rate);
double unsampled_loss(double loss, double sampling_rate);

// Where the base loss of a Gaussian step may be cut: above `high` lies at most `tail_mass` of P', below `low` of Q.
struct LossRange {
  double low;
  double high;
};
LossRange gaussian_range(const Step& step, double tail_mass);

// True for the pair (1-q)N(0) + qN(±½).
bool is_replaced_gaussian(const Step& step);

// True if the pair is the symmetric extension of the sampled curve at ε ≥ 0.
bool is_mirrored(const Step& step);

// True if an output that only Q has (base loss -∞) is made finite by sampling: P' has it too, with a share of 1-q, so
// that ln(1-q) is the lowest loss of the pair and has mass of its own.
bool reveals_absence(const Step& step);

// The largest finite loss of the pair in this direction, ∞ if there is none.
double largest_loss(const Step& step, Direction direction);

// The pair of a discrete Gaussian and the same moved by 1. P(j) = Q(-1-j), so that it is its own mirror image.
class LatticeLoss {
 public:
  explicit LatticeLoss(const Step& step);

  double loss(int64_t j) const { return (static_cast<double>(j) + 0.5) / variance_; }
  double log_p(int64_t j) const;
  // At least P(j), within a few roundings of the exponent.
  double p_mass(int64_t j) const;
  // A j ≥ 0 above which P has at most `tail_mass`; so has Q below -1-j.
  int64_t reach(double tail_mass) const;

 private:
  double stddev_;
  double variance_;
  double log_total_;  // ln Σ e^{-j²/2σ²}, rounded down
};

// The pair (1-q)N(0) + qN(±½), in the variable s = x/(2z²), where x is the output; y = x/z = 2sz is standard normal
// under N(0).
class ReplacedGaussian {
 public:
  explicit ReplacedGaussian(const Step& step);

  double mu() const { return mu_; }
  // At most `tail_mass` of P lies above this s, and of Q below its negative.
  double reach(double tail_mass) const;
  double loss(double s) const;
  double variable_at(double loss) const;
  // ln of P's density in s divided by that of N(0), and the same for Q.
  double log_p_factor(double s) const;
  double log_q_factor(double s) const { return log_p_factor(-s); }
  // ln of N(0)'s density in s.
  double log_centre_density(double s) const;
  // (e^{loss(to)}·Q - P)(s) for s ≤ to; for s ≥ to its negative. As densities in s, without cancellation.
  double excess(double s, double to) const;

 private:
  double mu_;
  double log_rest_;     // ln(1-q)
  double log_overlap_;  // ln(q e^{-μ²/8})
};

}  // namespace sotto::privacy
