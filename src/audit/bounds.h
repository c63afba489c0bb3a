// Lower bounds on ε from numbers that an attacker computed in two neighbouring worlds.
//
// The attacker says "with" beyond a threshold. The threshold is chosen on the first quarter of the numbers and tested
// on the others, where both error rates get Clopper–Pearson limits. Two bounds follow:
//
//   epsilon  ln((1 - FNR⁺ - δ) / FPR⁺), or the same with the rates exchanged: holds for any mechanism.
//   mu       Φ⁻¹(1 - FPR⁺) - Φ⁻¹(FNR⁺): a mechanism that is μ-GDP has no point of its trade-off curve above its μ. For
//            Gaussian releases gaussian_epsilon(mu, ln δ) is a lower bound on ε that needs far fewer trials.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace sotto::audit {

// One-sided Clopper–Pearson limits on a probability after `events` of `trials`: the truth is above the upper one (below
// the lower one) with probability alpha at most.
double upper_limit(int64_t events, int64_t trials, double alpha);
double lower_limit(int64_t events, int64_t trials, double alpha);

// What the attacker computed: of every trial one number. At least two trials in each world.
struct Sample {
  std::vector<double> without;  // the canary is not there
  std::vector<double> with;
};

struct ErrorRates {
  double false_positive = 1;  // "with" is said although the canary is not there
  double false_negative = 1;
};

struct Bounds {
  double epsilon = 0;
  double mu = 0;
  ErrorRates limits = {};  // on the rates of the test that gave `mu`
  // The Gaussian curve nearest to the measured one, and by how much the latter's μ varies along it: an estimate, not a
  // bound. Absent where the worlds do not overlap.
  std::optional<double> fitted_mu = {};
  double fit_error = 0;
  int64_t trials = 0;  // in both worlds

  // The ε of a Gaussian of `mu`.
  double epsilon_by_curve(double delta) const;
};

// `epsilon`, `mu` and `limits` hold together with probability 1 - alpha.
Bounds lower_bounds(const Sample& sample, double delta, double alpha);

}  // namespace sotto::audit
