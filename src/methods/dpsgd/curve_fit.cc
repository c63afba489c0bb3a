#include "methods/dpsgd/curve_fit.h"

#include "base/error.h"
#include "base/statistics.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

namespace sotto::methods {
namespace {

using Points = std::vector<CurvePoint>;

// A fitted family: the curve to use, and the same formula beyond the fitted range.
struct Fitted {
  ClipCurve curve;
  std::function<double(double)> formula;
};

struct Family {
  CurveFamily name;
  size_t least_points = 0;
  std::function<Fitted(const Points&)> fit;
};

double median_slope(const Points& points) {
  std::vector<double> slopes;
  for (size_t i = 0; i < points.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      slopes.push_back(std::log(points[i].bound / points[j].bound) / std::log(points[i].x / points[j].x));
    }
  }
  return quantile(slopes, 0.5);
}

// Least squares by QR (modified Gram–Schmidt): the coefficients of `columns` that come nearest to `target`.
std::vector<double> least_squares(std::vector<std::vector<double>> columns, std::vector<double> target) {
  const size_t width = columns.size();
  const auto dot = [](const auto& a, const auto& b) { return std::inner_product(a.begin(), a.end(), b.begin(), 0.0); };
  const auto subtract = [](auto& from, const auto& what, double times) {
    for (size_t i = 0; i < from.size(); ++i) from[i] -= times * what[i];
  };
  std::vector<std::vector<double>> r(width, std::vector<double>(width, 0.0));
  std::vector<double> projected(width);
  for (size_t k = 0; k < width; ++k) {
    r[k][k] = std::sqrt(dot(columns[k], columns[k]));
    for (double& value : columns[k]) value /= r[k][k];
    for (size_t j = k + 1; j < width; ++j) {
      r[k][j] = dot(columns[k], columns[j]);
      subtract(columns[j], columns[k], r[k][j]);
    }
    projected[k] = dot(columns[k], target);
    subtract(target, columns[k], projected[k]);
  }
  std::vector<double> coefficients(width);
  for (size_t k = width; k-- > 0;) {
    double rest = projected[k];
    for (size_t j = k + 1; j < width; ++j) rest -= r[k][j] * coefficients[j];
    coefficients[k] = rest / r[k][k];
  }
  return coefficients;
}

std::vector<double> column(const Points& points, const std::function<double(double)>& f) {
  std::vector<double> values;
  for (const CurvePoint& point : points) values.push_back(f(point.x));
  return values;
}

std::vector<double> bounds_of(const Points& points) {
  std::vector<double> values;
  for (const CurvePoint& point : points) values.push_back(point.bound);
  return values;
}

double squares_left(const Points& points, const std::function<double(double)>& f) {
  double sum = 0;
  for (const CurvePoint& point : points) sum += std::pow(point.bound - f(point.x), 2);
  return sum;
}

ClipCurve empty_curve(CurveFamily family, const Points& points) {
  ClipCurve curve;
  curve.family = family;
  curve.low = points.front().x;
  curve.high = points.back().x;
  return curve;
}

Fitted fit_quadratic(const Points& points) {
  Fitted fitted{empty_curve(CurveFamily::kQuadratic, points), {}};
  const auto c = least_squares({column(points, [](double) { return 1.0; }), column(points, [](double x) { return x; }),
                                column(points, [](double x) { return x * x; })},
                               bounds_of(points));
  fitted.curve.coefficients = {c[2], c[1], c[0]};
  fitted.formula = [c](double x) { return (c[2] * x + c[1]) * x + c[0]; };
  return fitted;
}

// For an exponent b the best factor is known, which leaves one unknown: a scan, then bisection where the squares turn
// from falling to rising.
Fitted fit_power(const Points& points) {
  constexpr double kSteepest = 5.0;
  constexpr int kScanSteps = 200;
  constexpr int kHalvings = 60;
  const double unit = std::exp(0.5 * (std::log(points.front().x) + std::log(points.back().x)));
  const auto factor = [&](double b) {
    double product = 0, squares = 0;
    for (const CurvePoint& point : points) {
      const double power = std::pow(point.x / unit, b);
      product += power * point.bound;
      squares += power * power;
    }
    return product / squares;
  };
  const auto squares = [&](double b) {
    return squares_left(points, [&, a = factor(b)](double x) { return a * std::pow(x / unit, b); });
  };
  const auto rising = [&](double b) {
    const double a = factor(b);
    double slope = 0;
    for (const CurvePoint& point : points) {
      const double fitted = a * std::pow(point.x / unit, b);
      slope += (fitted - point.bound) * fitted * std::log(point.x / unit);
    }
    return slope > 0;
  };
  const double step = 2 * kSteepest / kScanSteps;
  double best = -kSteepest;
  for (int i = 1; i <= kScanSteps; ++i) {
    const double b = -kSteepest + step * i;
    if (squares(b) < squares(best)) best = b;
  }
  double left = best - step, right = best + step;
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = 0.5 * (left + right);
    (rising(middle) ? right : left) = middle;
  }
  const double b = 0.5 * (left + right);
  const double a = factor(b) * std::pow(unit, -b);
  Fitted fitted{empty_curve(CurveFamily::kPower, points), [a, b](double x) { return a * std::pow(x, b); }};
  fitted.curve.coefficients = {a, b};
  return fitted;
}

// Two lines that meet at one of the inner points, the one that leaves the fewest squares.
Fitted fit_piecewise(const Points& points) {
  Fitted best;
  double fewest = std::numeric_limits<double>::infinity();
  for (size_t k = 1; k + 1 < points.size(); ++k) {
    const double bend = points[k].x;
    const auto c =
        least_squares({column(points, [](double) { return 1.0; }), column(points, [&](double x) { return x - bend; }),
                       column(points, [&](double x) { return std::max(0.0, x - bend); })},
                      bounds_of(points));
    const auto formula = [c, bend](double x) { return c[0] + c[1] * (x - bend) + c[2] * std::max(0.0, x - bend); };
    const double left = squares_left(points, formula);
    if (!(left < fewest)) continue;
    fewest = left;
    best = {empty_curve(CurveFamily::kPiecewiseLinear, points), formula};
    best.curve.knots = {points.front().x, bend, points.back().x};
    best.curve.values = column({points.front(), points[k], points.back()}, formula);
  }
  return best;
}

// Pools neighbours that fall until none does: the least squares fit in ln C that never falls.
Fitted fit_isotonic(const Points& points) {
  struct Block {
    double sum = 0;
    size_t first = 0, last = 0;
    double mean() const { return sum / static_cast<double>(last - first + 1); }
  };
  std::vector<Block> blocks;
  for (size_t i = 0; i < points.size(); ++i) {
    blocks.push_back({std::log(points[i].bound), i, i});
    while (blocks.size() > 1 && blocks[blocks.size() - 2].mean() >= blocks.back().mean()) {
      Block& before = blocks[blocks.size() - 2];
      before.sum += blocks.back().sum;
      before.last = blocks.back().last;
      blocks.pop_back();
    }
  }
  Fitted fitted{empty_curve(CurveFamily::kIsotonic, points), {}};
  for (const Block& block : blocks) {
    const double bound = block.first == block.last ? points[block.first].bound : std::exp(block.mean());
    for (const size_t i : {block.first, block.last}) {
      if (!fitted.curve.knots.empty() && fitted.curve.knots.back() == points[i].x) continue;
      fitted.curve.knots.push_back(points[i].x);
      fitted.curve.values.push_back(bound);
    }
  }
  fitted.formula = fitted.curve;
  return fitted;
}

std::vector<Family> families(bool monotone) {
  std::vector<Family> result = {{CurveFamily::kPower, 2, fit_power},
                                {CurveFamily::kQuadratic, 3, fit_quadratic},
                                {CurveFamily::kPiecewiseLinear, 3, fit_piecewise}};
  if (monotone) result.push_back({CurveFamily::kIsotonic, 2, fit_isotonic});
  return result;
}

bool all_equal(const Points& points) {
  return std::all_of(points.begin(), points.end(), [&](const auto& p) { return p.bound == points.front().bound; });
}

std::optional<double> r_squared(const Points& points, const std::function<double(double)>& formula) {
  if (all_equal(points)) return std::nullopt;
  double mean = 0;
  for (const CurvePoint& point : points) mean += point.bound / static_cast<double>(points.size());
  return 1 - squares_left(points, formula) / squares_left(points, [&](double) { return mean; });
}

double leave_one_out(const Family& family, const Points& points) {
  double squares = 0;
  for (size_t i = 0; i < points.size(); ++i) {
    Points others = points;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
    squares += squares_left({points[i]}, family.fit(others).formula);
  }
  return std::sqrt(squares / static_cast<double>(points.size()));
}

FamilyFit judge(const Family& family, const Points& points, const FitRules& rules) {
  FamilyFit result;
  result.family = family.name;
  if (points.size() < family.least_points) {
    result.why_not = fmt::format("needs {} points, there {} {}", family.least_points, points.size() == 1 ? "is" : "are",
                                 points.size());
    return result;
  }
  Fitted fitted = family.fit(points);
  fitted.curve.axis = rules.axis;
  fitted.curve.least = rules.least;
  fitted.curve.most = rules.most;
  result.curve = fitted.curve;
  result.r_squared = r_squared(points, fitted.formula);
  if (points.size() > family.least_points) {
    result.leave_one_out = leave_one_out(family, points);
  } else {
    result.why_not = fmt::format("{} points leave none to judge it by", points.size());
  }
  return result;
}

ClipCurve constant_curve(double bound, const FitRules& rules) {
  ClipCurve curve;
  curve.axis = rules.axis;
  curve.coefficients = {bound};
  return curve;
}

ClipCurve choose(const std::vector<FamilyFit>& families, const Points& points, const FitRules& rules) {
  if (all_equal(points)) return constant_curve(points.front().bound, rules);
  if (rules.monotone) return *families.back().curve;
  const std::vector<double> bounds = bounds_of(points);
  const FamilyFit* best = &families.front();
  const double negligible = 1e-9 * *std::max_element(bounds.begin(), bounds.end());
  for (const FamilyFit& family : families) {
    if (!family.leave_one_out) continue;
    if (!best->leave_one_out || *family.leave_one_out < *best->leave_one_out - negligible) best = &family;
  }
  return *best->curve;
}

}  // namespace

size_t best_bound(const std::vector<double>& accuracies, const std::vector<double>& bounds) {
  SOTTO_INVARIANT(!bounds.empty() && accuracies.size() == bounds.size());
  const auto rank = [&](size_t j) {
    return std::isnan(accuracies[j]) ? -std::numeric_limits<double>::infinity() : accuracies[j];
  };
  size_t best = 0;
  for (size_t j = 1; j < bounds.size(); ++j) {
    if (rank(j) > rank(best) || (rank(j) == rank(best) && bounds[j] < bounds[best])) best = j;
  }
  return best;
}

void drop_outliers(Points& points, Points& dropped, double grain) {
  constexpr size_t kFewest = 4;
  if (points.size() < kFewest) return;
  const double slope = median_slope(points);
  std::vector<double> residuals;
  for (const CurvePoint& point : points) residuals.push_back(std::log(point.bound) - slope * std::log(point.x));
  const double low = quantile(residuals, 0.25), high = quantile(residuals, 0.75);
  // One step of the grid must not be dropped for how its logarithm is rounded.
  const double margin = std::max(1.5 * (high - low), std::log(grain) * (1 + 1e-9) + 1e-9);
  Points kept;
  for (size_t i = 0; i < points.size(); ++i) {
    const bool inside = residuals[i] >= low - margin && residuals[i] <= high + margin;
    (inside ? kept : dropped).push_back(points[i]);
  }
  points = std::move(kept);
}

CurveFit fit_curve(Points points, const FitRules& rules) {
  SOTTO_INVARIANT(!points.empty());
  std::sort(points.begin(), points.end(), [](const auto& a, const auto& b) { return a.x < b.x; });
  CurveFit result;
  if (rules.outliers) drop_outliers(points, result.dropped, rules.grain);
  for (const Family& family : families(rules.monotone)) result.families.push_back(judge(family, points, rules));
  result.chosen = choose(result.families, points, rules);
  result.kept = std::move(points);
  return result;
}

}  // namespace sotto::methods
