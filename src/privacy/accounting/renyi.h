// Rényi divergences of steps, and the ε they certify.
//
// Composed divergences add up: ρ(α) = Σ count·RDP(α). Two conversions, for any order α > 1:
//   classical: ε = ρ(α) + ln(1/δ)/(α-1)
//   tight:     ε = ρ(α) + ln((α-1)/α) - (ln δ + ln α)/(α-1)
// both clamped at 0. Quadratures carry relative errors near 1e-13; results are rounded up by 1e-12.
#pragma once

#include "privacy/accounting/step.h"

#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace sotto::privacy {

enum class Orders { kReal, kIntegersTo64 };
enum class Conversion { kClassical, kTight };

// RDP of one step at a real order above 1: the larger of the two directions. ∞ for approximate steps.
double renyi_divergence(const Step& step, double order);

class RenyiCurve {
 public:
  explicit RenyiCurve(std::span<const Steps> steps);

  // Of the whole composition.
  double at(double order) const;

  struct Best {
    double value = 0;
    double order = 0;
  };
  // The least ε over the orders. Real orders are searched from 1.0001 to 10⁸.
  Best epsilon(double delta, Orders orders, Conversion conversion) const;
  // The least ln δ over the orders.
  Best log_delta(double epsilon, Orders orders, Conversion conversion) const;

 private:
  std::vector<Steps> steps_;
  mutable std::map<double, double> known_;
};

}  // namespace sotto::privacy
