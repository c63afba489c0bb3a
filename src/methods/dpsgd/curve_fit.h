// From the best bound at a few budgets to a clipping curve.
//
// All sums of squares are of the bound C itself, whatever the family, so that their R² and errors compare.
#pragma once

#include "methods/dpsgd/clip_curve.h"

#include <optional>
#include <string>
#include <vector>

namespace sotto::methods {

struct CurvePoint {
  double x = 0;      // the budget, on the curve's axis
  double bound = 0;  // the best bound there

  bool operator==(const CurvePoint&) const = default;
};

struct FitRules {
  CurveAxis axis = CurveAxis::kEpsilon;
  bool outliers = true;   // drop points by the inter-quartile rule
  bool monotone = false;  // the bound may not fall as x grows: isotonic regression is chosen
  double least = 0;       // the smallest and largest bound that were tried: the curve stays between them
  double most = 0;        // (0 = no limit)
  double grain = 1;       // the largest ratio of two neighbouring bounds that were tried
};

// One family against the points that were kept.
struct FamilyFit {
  CurveFamily family = CurveFamily::kConstant;
  std::optional<ClipCurve> curve;       // absent: too few points
  std::optional<double> r_squared;      // 1 - (squares left)/(squares about the mean); absent if all bounds are equal
  std::optional<double> leave_one_out;  // root mean square error at each point of the curve fitted to the others; not
                                        // clamped, so that the first and last point count; absent if too few points
  std::string why_not;                  // why it cannot be fitted or judged; "" = it can
};

struct CurveFit {
  std::vector<CurvePoint> kept, dropped;  // by ascending x
  std::vector<FamilyFit> families;        // power, quadratic, piecewise-linear; isotonic too if monotone
  ClipCurve chosen;
};

// The index of the highest accuracy; of equal ones that of the smallest bound, which needs the least noise. NaN counts
// as lowest.
size_t best_bound(const std::vector<double>& accuracies, const std::vector<double>& bounds);

// Splits off outliers. Judged is ln C less its trend, a line in ln x whose slope is the median of the slopes between
// all pairs of points (Theil and Sen): C itself would call both ends of a steep curve outliers. With quartiles Q1, Q3
// (linear between order statistics), a point is dropped below Q1 - m or above Q3 + m, where m is the larger of
// 1.5·(Q3 - Q1) and ln(grain): one step of the grid is never an outlier. Of fewer than four points none is dropped.
void drop_outliers(std::vector<CurvePoint>& points, std::vector<CurvePoint>& dropped, double grain);

// Points have distinct positive x and positive bounds; there is at least one. Chosen is a constant if all kept bounds
// are equal; else isotonic if monotone; else the family with the least leave-one-out error, of equal ones the first
// above; else, from two points, the power law.
CurveFit fit_curve(std::vector<CurvePoint> points, const FitRules& rules);

}  // namespace sotto::methods
