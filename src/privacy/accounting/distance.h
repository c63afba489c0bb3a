// What it costs that the law of what is released is near the one that was analysed, and not the same.
//
// Proof: docs/proofs/gaussian.md#finite-precision
#pragma once

#include <cmath>
#include <limits>

namespace sotto::privacy {

// The least ε that leaves room in δ for a total variation τ in both worlds, (1 + e^ε)τ, or not much more; ∞ if there is
// none. `epsilon_at` is ε of the ideal law at a δ.
template <typename F>
double with_distance(double tau, double delta, const F& epsilon_at) {
  const double all = epsilon_at(delta - tau);
  if (tau == 0 || delta - (1 + std::exp(all)) * tau == delta - tau) return all;
  for (const double share : {1e-6, 1e-3, 0.1, 0.5}) {
    const double epsilon = epsilon_at(delta * (1 - share));
    if ((1 + std::exp(epsilon)) * tau <= share * delta) return epsilon;
  }
  return std::numeric_limits<double>::infinity();
}

}  // namespace sotto::privacy
