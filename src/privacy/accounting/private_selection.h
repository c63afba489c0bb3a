// What it costs to show only the best of a random number of trials (Papernot and Steinke, ICLR 2022). The proofs, and
// where they differ from the paper, are in docs/proofs/private-selection.md.
//
// K trials are run, K drawn from a law that does not depend on the data and kept secret. Each releases a result with its
// score; the one with the best score is shown, all others are forgotten. Whatever the number of trials, one of them is
// shown: the cost grows with log E[K] where that of showing all of them grows with √K or K.
#pragma once

#include "privacy/accounting/step.h"

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace sotto::privacy {

// The law of K. Made only by its factories, so that it is always valid.
class TrialLaw {
 public:
  // Truncated negative binomial with shape η: P(k) ∝ (1-γ)^k · Π_{l<k} (l+η)/(l+1) for k ≥ 1. η = 1 is the geometric
  // law, η = 0 the logarithmic one, which costs less. 1 < mean ≤ 1000, 0 ≤ shape ≤ 10, or a UserError.
  static TrialLaw truncated_negative_binomial(double shape, double mean);
  static TrialLaw geometric(double mean) { return truncated_negative_binomial(1, mean); }
  static TrialLaw logarithmic(double mean) { return truncated_negative_binomial(0, mean); }
  // 0 < mean ≤ 700, or a UserError. K may be 0: then nothing is shown.
  static TrialLaw poisson(double mean);

  bool is_poisson() const { return poisson_; }
  double shape() const { return shape_; }
  double gamma() const { return gamma_; }
  double mean() const { return mean_; }

  // P(K = k).
  long double probability(int64_t k) const;
  // K, one coin for every k. Up to kDrawDistance in total variation, probabilities are right to a relative kDrawError.
  int64_t draw(const std::function<uint64_t()>& bits) const;
  static constexpr double kDrawDistance = 1e-30;
  static constexpr double kDrawError = 1e-12;

 private:
  TrialLaw(bool poisson, double shape, double gamma, double mean)
      : poisson_(poisson), shape_(shape), gamma_(gamma), mean_(mean) {}
  int64_t least() const { return poisson_ ? 0 : 1; }
  long double first() const;           // P(least)
  long double ratio(int64_t k) const;  // P(k+1) / P(k)

  bool poisson_;
  double shape_;  // η
  double gamma_;  // γ
  double mean_;
};

// All that one trial releases about one record, its score included.
struct TrialCost {
  std::vector<Steps> steps;
  // Only Rényi divergences of these steps are known to hold (discrete Gaussians).
  bool renyi_only = false;
  // Distance of what is released to what `steps` say, in total variation.
  double slack = 0;
};

// The Rényi divergence of order λ > 1 between what is shown in two neighbouring worlds, at most. Every trial costs one of
// `trials`, it does not matter which: the settings of a trial may be drawn at random, and records may be held by
// different clients. Random allocation counts as if all its batches were one where only Rényi divergences are known.
double selection_divergence(std::span<const TrialCost> trials, const TrialLaw& law, double order);

// ε at `delta` of showing the best, rounded up; ∞ if there is none, 0 if trials release nothing.
double selection_epsilon(std::span<const TrialCost> trials, const TrialLaw& law, double delta);

// Runs that are all shown. Which of the alternatives a run costs a record is not known, and may be another every time.
struct ShownRuns {
  std::vector<TrialCost> alternatives;
  int64_t times = 1;
};

// ε at `delta` of showing everything. Certified by losses where every run has one alternative, by Rényi divergences
// otherwise.
double all_runs_epsilon(std::span<const ShownRuns> runs, double delta);

}  // namespace sotto::privacy
