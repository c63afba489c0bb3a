// The groupwise Gaussian: bound each group, add noise per group, pay once.
//
// If one change moves group g by at most Δ_g and its noise has standard deviation s_g per coordinate, the whole release
// costs exactly what one Gaussian of multiplier z costs, 1/z² = Σ_g (Δ_g/s_g)². One group is the plain Gaussian.
//
// Where the groups are bounded together (Norm::kJoint), noise s_g = z·Δ_g in every group costs z: then a change that
// moves one group leaves less for the others.
//
// Values and noise live on a grid per group (see noise/grid.h), for which Δ_g is charged; a further 1/1024 of Δ_g
// covers the rounding of sums that were computed in floats.
//
// Proof: docs/proofs/gaussian.md
#pragma once

#include "privacy/noise/gaussian.h"
#include "privacy/release.h"

#include <limits>
#include <string>
#include <vector>

namespace sotto::privacy {

class GroupwiseGaussian {
 public:
  // Spends exactly `noise_multiplier` whatever the weights: s_g = z·Δ_g/√ω_g with ω = weights scaled to sum 1. Without
  // weights, those of least noise energy: ω_g ∝ Δ_g·√d_g. Groups without coordinates or with Δ = 0 get no noise and
  // spend nothing. A multiplier or weight that is not positive, or no group at all, is a UserError.
  static GroupwiseGaussian calibrated(double noise_multiplier, std::vector<Group> groups,
                                      std::vector<double> weights = {});
  // For groups that are bounded together: s_g = z·Δ_g.
  static GroupwiseGaussian joint(double noise_multiplier, std::vector<Group> groups);
  // With the noise a paper prints, whatever it proves. Groups of standard deviation 0 are released as they are, and
  // then the event says that nothing is proven.
  static GroupwiseGaussian with_stddevs(std::vector<Group> groups, std::vector<double> stddevs);

  // Of the release as a whole: what was asked for if it was calibrated, which the noise that is added never falls
  // short of, so that releases under different bounds are of one kind; otherwise what that noise amounts to.
  double noise_multiplier() const;
  double noise_stddev(size_t group) const { return noises_[group].stddev; }
  const std::vector<Group>& groups() const { return groups_; }
  int64_t coordinates() const;
  // The root of the expected squared norm of the noise in all groups but the last few.
  double noise_norm(size_t left_out = 0) const;

  // What the ledger must hold for `steps` applications that touch a record, out of `draws` in all; a Channel says of
  // what, by whom and for whom.
  Event event(const Neighbours& neighbours, int64_t steps = 1, int64_t draws = 1) const;

  // Adds the noise. `bounded` must have this mechanism's groups, and `receipt` must be for its event.
  Release randomise(Bounded&& bounded, Receipt receipt, NoiseSource& source) const;
  // Whether a receipt is for noise of this mechanism.
  bool is_paid_by(const Receipt& receipt) const;

  // Adds the noise of one step in place, for mechanisms of this folder that release what becomes of many steps.
  void perturb(Bounded& bounded, NoiseSource& source) const;

 private:
  struct GroupNoise {
    double stddev = 0;       // 0 = the group gets none
    double sensitivity = 0;  // Δ_g with grid and margin
    NoiseGrid grid;
  };
  GroupwiseGaussian(std::vector<Group> groups, const std::vector<double>& stddevs, Norm norm = Norm::kL2);
  double joint_multiplier() const;
  double reference_sensitivity() const;
  double slack() const;

  std::vector<Group> groups_;
  Norm norm_;
  std::vector<GroupNoise> noises_;
  double asked_ = std::numeric_limits<double>::infinity();
  std::string bare_ = {};  // a group that should have noise and has none
};

}  // namespace sotto::privacy
