// The clipping bound as a function of the budget.
//
// A curve is fitted offline on public data (`sotto fit`) and only evaluated online, so that a client's bound depends on
// public settings alone. It is never extrapolated: outside the fitted range it keeps its value at the nearer end.
#pragma once

#include "settings/choice.h"

#include <nlohmann/json_fwd.hpp>

#include <array>
#include <string>
#include <vector>

namespace sotto::methods {

enum class CurveAxis {
  kEpsilon,
  kSignalToNoise  // of one step: larger = less noise; the word is "noise"
};
constexpr auto choices(CurveAxis) {
  return std::to_array<settings::Choice<CurveAxis>>(
      {{CurveAxis::kEpsilon, "epsilon"}, {CurveAxis::kSignalToNoise, "noise"}});
}

enum class CurveFamily { kConstant, kQuadratic, kPower, kPiecewiseLinear, kIsotonic };
constexpr auto choices(CurveFamily) {
  return std::to_array<settings::Choice<CurveFamily>>({{CurveFamily::kConstant, "constant"},
                                                       {CurveFamily::kQuadratic, "quadratic"},
                                                       {CurveFamily::kPower, "power"},
                                                       {CurveFamily::kPiecewiseLinear, "piecewise-linear"},
                                                       {CurveFamily::kIsotonic, "isotonic"}});
}

struct ClipCurve {
  CurveAxis axis = CurveAxis::kEpsilon;  // what x is
  CurveFamily family = CurveFamily::kConstant;
  std::vector<double> coefficients;  // constant: C; quadratic: α β γ of αx²+βx+γ; power: a b of a·x^b
  std::vector<double> knots;         // piecewise-linear, isotonic: x, ascending
  std::vector<double> values;        // the bound at each knot; straight lines between, for isotonic in (ln x, ln C)
  double low = 0;                    // x is clamped to [low, high]; where there are knots these are the first and
  double high = 0;                   // the last, and for a constant they mean nothing
  double least = 0;                  // answers are clamped to [least, most]
  double most = 0;                   // 0 = no limit

  // Positive and finite for every x > 0.
  double operator()(double x) const;

  bool operator==(const ClipCurve&) const = default;
};

// Only what the family needs.
nlohmann::json to_json(const ClipCurve& curve);

// A curve that keeps the promise above, or a UserError that begins with `where`.
ClipCurve clip_curve_from(const nlohmann::json& value, const std::string& where);

// The names of the built-in curves.
const std::vector<std::string>& built_in_curves();

// A built-in curve by its name, otherwise the entry "curve" of a file made by `sotto fit` (or of curve.json in the
// folder it made). "paper-mnist" and "paper-cifar10" are the two fits printed in the PAC-DP paper: the first from its
// least MNIST budget 0.05 to where it stops rising, 1.0928; the second over its CIFAR-10 budgets, 0.5 to 5.
ClipCurve find_clip_curve(const std::string& name_or_file);

}  // namespace sotto::methods
