// Private quantile tracking: a bound that follows a quantile of private norms.
//
// Everyone says with one bit whether its norm is below the bound; the bits are summed with noise, and the bound moves
// geometrically until the wanted share is below it (Andrew et al., NeurIPS 2021). The bit travels as one more group of
// the release that it serves: centred, ±½, so that it moves a sum by at most ½ when one appears or disappears.
//
// Proof: docs/proofs/gaussian.md for the groups of one release, poisson-batches.md for the rule of halves
#pragma once

#include "privacy/bounded.h"

namespace sotto::privacy {

struct QuantileOptions {
  enum class Tracking {
    kSteps,     // the bound moves after every release
    kHistogram  // norms are counted in bins of equal ratio; the bound is read from the counts of a whole round
  };

  double quantile = 0.5;         // the share of norms that should be below the bound
  double learning_rate = 0.2;    // of the bound's logarithm
  double relative_noise = 0.05;  // wanted standard deviation of the noisy share
  Tracking tracking = Tracking::kSteps;
  bool in_the_clear = false;  // DP-SGD tells its counts without noise, as some papers do: then nothing is proven
};

// The bit as a tensor, and how it is bounded.
NamedTensor below(double norm, double bound);
ClipRule below_rule();

// The share ω of a release's budget (see GroupwiseGaussian) at which the noisy share of `count` bits has the wanted
// standard deviation; at most a tenth, so that the bound never costs more than it is worth.
double below_weight(const QuantileOptions& options, double noise_multiplier, double count);

// The bound after a noisy sum of centred bits out of `count`.
double next_bound(const QuantileOptions& options, double bound, const at::Tensor& noisy_sum, double count);

// DP-SGD tells of its gradients' norms in one more group of every step. A record that becomes another moves two counts,
// by √2 together; where batches are `sampled` it must be twice what one record adds (accounting/worst_pair.h).
Group norm_group(const QuantileOptions& options, Adjacency adjacency, bool sampled);
// What a batch puts into that group; a record whose gradient is not finite adds nothing, as to the sum.
at::Tensor norm_statistic(const QuantileOptions& options, const at::Tensor& norms, double bound);

// What clients know of the norms travels with the model: the bound itself, by this name, or the counts. Before anything is
// known:
inline constexpr const char* kLearntBound = "clip";
NamedTensor first_statistic(const QuantileOptions& options, double bound);
// The bound that follows from it, or `fallback` if that is nothing.
double learnt_bound(const QuantileOptions& options, const NamedTensors& values, double fallback);

}  // namespace sotto::privacy
