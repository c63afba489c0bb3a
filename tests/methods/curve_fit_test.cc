#include "methods/dpsgd/curve_fit.h"

#include "base/random.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <functional>

namespace sotto::methods {
namespace {

using Points = std::vector<CurvePoint>;
using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const FitRules kPlain{.outliers = false};
const Points kZigzag = {{1, 1}, {2, 3}, {3, 2}, {4, 5}};

Points on(const std::vector<double>& xs, const std::function<double(double)>& f) {
  Points points;
  for (const double x : xs) points.push_back({x, f(x)});
  return points;
}

const FamilyFit& family(const CurveFit& fit, CurveFamily name) {
  for (const FamilyFit& candidate : fit.families) {
    if (candidate.family == name) return candidate;
  }
  throw std::runtime_error("no family " + settings::word(name));
}

double squares(const Points& points, const std::function<double(double)>& f) {
  double sum = 0;
  for (const auto& point : points) sum += std::pow(point.bound - f(point.x), 2);
  return sum;
}

TEST(BestBound, TiesGoToTheSmallerBound) {
  EXPECT_EQ(best_bound({0.1, 0.5, 0.5, 0.2}, {1, 2, 3, 4}), 1U);
  EXPECT_EQ(best_bound({0.5, 0.5}, {4, 2}), 1U);
  EXPECT_EQ(best_bound({std::nan(""), 0.0, -1.0}, {1, 2, 3}), 1U);
  EXPECT_EQ(best_bound({std::nan(""), std::nan("")}, {2, 1}), 1U);
}

// With u = x - 2.5 the polynomials 1, u, u² - 1.25 are orthogonal on 1, 2, 3, 4 (squares 4, 5, 4), so that the fit of
// 1, 3, 2, 5 is 11/4 + (5.5/5) u + (1/4)(u² - 1.25) = 0.25 x² - 0.15 x + 1.25; it leaves 2.45 of 8.75 squares.
TEST(CurveFit, QuadraticByHand) {
  const CurveFit fit = fit_curve(kZigzag, kPlain);
  const FamilyFit& quadratic = family(fit, CurveFamily::kQuadratic);
  EXPECT_THAT(quadratic.curve->coefficients,
              ElementsAre(DoubleNear(0.25, 1e-12), DoubleNear(-0.15, 1e-12), DoubleNear(1.25, 1e-12)));
  EXPECT_NEAR(*quadratic.r_squared, 0.72, 1e-12);
  EXPECT_EQ(quadratic.curve->low, 1);
  EXPECT_EQ(quadratic.curve->high, 4);
}

// A parabola through three of four evenly spaced points misses an end by the third difference 5 - 6 + 9 - 1 = 7 and an
// inner point by a third of it.
TEST(CurveFit, LeaveOneOutByHand) {
  const CurveFit fit = fit_curve(kZigzag, kPlain);
  EXPECT_NEAR(*family(fit, CurveFamily::kQuadratic).leave_one_out, std::sqrt((49 + 49 / 9.0 + 49 / 9.0 + 49) / 4),
              1e-9);
}

// Bend at 2: the first point is met, a line through 3, 2, 5 leaves 24/9. Bend at 3: the last point is met, the line
// 1.5, 2, 2.5 through 1, 3, 2 leaves 1.5.
TEST(CurveFit, PiecewiseLinearByHand) {
  const FamilyFit piecewise = family(fit_curve(kZigzag, kPlain), CurveFamily::kPiecewiseLinear);
  EXPECT_THAT(piecewise.curve->knots, ElementsAre(1, 3, 4));
  EXPECT_THAT(piecewise.curve->values,
              ElementsAre(DoubleNear(1.5, 1e-12), DoubleNear(2.5, 1e-12), DoubleNear(5, 1e-12)));
  EXPECT_NEAR(*piecewise.r_squared, 1 - 1.5 / 8.75, 1e-12);
}

TEST(CurveFit, PowerLawLeavesTheFewestSquaresOfTheBoundItself) {
  const FamilyFit power = family(fit_curve(kZigzag, kPlain), CurveFamily::kPower);
  const double a = power.curve->coefficients[0], b = power.curve->coefficients[1];
  const auto left = [&](double factor, double exponent) {
    return squares(kZigzag, [&](double x) { return factor * std::pow(x, exponent); });
  };
  for (const double da : {-1e-3, 0.0, 1e-3}) {
    for (const double db : {-1e-3, 0.0, 1e-3}) {
      if (da == 0 && db == 0) continue;
      EXPECT_GT(left(a + da, b + db), left(a, b));
    }
  }
  EXPECT_NEAR(*power.r_squared, 1 - left(a, b) / 8.75, 1e-12);
}

TEST(CurveFit, TheTrueFamilyIsRecoveredAndChosen) {
  const std::vector<double> xs = {0.05, 0.1, 0.3, 1, 2, 5};
  const CurveFit power = fit_curve(on(xs, [](double x) { return 3 * std::pow(x, 0.4); }), kPlain);
  EXPECT_EQ(power.chosen.family, CurveFamily::kPower);
  EXPECT_THAT(power.chosen.coefficients, ElementsAre(DoubleNear(3, 1e-9), DoubleNear(0.4, 1e-9)));
  EXPECT_NEAR(*family(power, CurveFamily::kPower).leave_one_out, 0, 1e-9);
  EXPECT_NEAR(*family(power, CurveFamily::kPower).r_squared, 1, 1e-12);

  const CurveFit falling = fit_curve(on(xs, [](double x) { return 2 / x; }), kPlain);
  EXPECT_THAT(falling.chosen.coefficients, ElementsAre(DoubleNear(2, 1e-9), DoubleNear(-1, 1e-9)));

  const CurveFit quadratic = fit_curve(on(xs, [](double x) { return 0.0426 * x * x + 1.29 * x + 1.106; }), kPlain);
  EXPECT_EQ(quadratic.chosen.family, CurveFamily::kQuadratic);
  EXPECT_THAT(quadratic.chosen.coefficients,
              ElementsAre(DoubleNear(0.0426, 1e-9), DoubleNear(1.29, 1e-9), DoubleNear(1.106, 1e-9)));

  const CurveFit bent = fit_curve(on({1, 2, 3, 4, 5, 6}, [](double x) { return 1 + std::min(x, 3.0) * 2; }), kPlain);
  EXPECT_EQ(bent.chosen.family, CurveFamily::kPiecewiseLinear);
  EXPECT_THAT(bent.chosen.knots, ElementsAre(1, 3, 6));
}

TEST(CurveFit, OfEquallyGoodFamiliesTheSimplestIsChosen) {
  // A line through the origin belongs to all three.
  const CurveFit fit = fit_curve(on({1, 2, 3, 5, 8}, [](double x) { return 2 * x; }), kPlain);
  EXPECT_EQ(fit.chosen.family, CurveFamily::kPower);
}

TEST(CurveFit, FewPointsLeaveFamiliesOut) {
  const CurveFit one = fit_curve({{1, 5}}, kPlain);
  EXPECT_EQ(one.chosen.family, CurveFamily::kConstant);
  EXPECT_EQ(one.chosen(100), 5);
  for (const FamilyFit& left_out : one.families) {
    EXPECT_FALSE(left_out.curve);
    EXPECT_THAT(left_out.why_not, HasSubstr("points, there is 1"));
  }
  const CurveFit two = fit_curve({{1, 2}, {4, 4}}, kPlain);
  EXPECT_EQ(two.chosen.family, CurveFamily::kPower);
  EXPECT_NEAR(two.chosen(2), 2 * std::sqrt(2.0), 1e-9);
  EXPECT_THAT(family(two, CurveFamily::kQuadratic).why_not, HasSubstr("needs 3 points, there are 2"));
  const CurveFit three = fit_curve({{1, 2}, {2, 3}, {4, 3}}, kPlain);
  EXPECT_EQ(three.chosen.family, CurveFamily::kPower);
  EXPECT_TRUE(family(three, CurveFamily::kQuadratic).curve);
  EXPECT_FALSE(family(three, CurveFamily::kQuadratic).leave_one_out);
  EXPECT_THAT(family(three, CurveFamily::kQuadratic).why_not, HasSubstr("leave none to judge it by"));
}

TEST(CurveFit, EqualBoundsAreAConstant) {
  for (const bool monotone : {false, true}) {
    const CurveFit fit = fit_curve({{1, 2}, {2, 2}, {3, 2}, {4, 2}, {5, 2}},
                                   {.axis = CurveAxis::kSignalToNoise, .monotone = monotone, .grain = 1});
    EXPECT_EQ(fit.chosen.family, CurveFamily::kConstant);
    EXPECT_EQ(fit.chosen.axis, CurveAxis::kSignalToNoise);
    EXPECT_TRUE(fit.dropped.empty());
    EXPECT_FALSE(family(fit, CurveFamily::kPower).r_squared);
  }
}

TEST(CurveFit, IsotonicByHand) {
  // 4 and 1 fall and are pooled to their geometric mean.
  const CurveFit fit = fit_curve({{1, 1}, {2, 4}, {4, 1}, {8, 16}}, {.outliers = false, .monotone = true});
  EXPECT_EQ(fit.chosen.family, CurveFamily::kIsotonic);
  EXPECT_THAT(fit.chosen.knots, ElementsAre(1, 2, 4, 8));
  EXPECT_THAT(fit.chosen.values, ElementsAre(1, DoubleNear(2, 1e-12), DoubleNear(2, 1e-12), 16));
  EXPECT_NEAR(fit.chosen(3), 2, 1e-12);
  EXPECT_NEAR(fit.chosen(std::sqrt(32.0)), std::sqrt(32.0), 1e-9);
  // A late small bound pulls everything before it into one block.
  const CurveFit pooled = fit_curve({{1, 8}, {2, 16}, {4, 4}, {8, 2}, {16, 64}}, {.outliers = false, .monotone = true});
  EXPECT_THAT(pooled.chosen.knots, ElementsAre(1, 8, 16));
  EXPECT_NEAR(pooled.chosen.values[0], std::pow(2.0, 2.5), 1e-12);  // (3 + 4 + 2 + 1)/4 in powers of two
  // All fall: one block, whose curve is flat.
  const CurveFit falling = fit_curve({{1, 4}, {2, 2}, {4, 1}}, {.outliers = false, .monotone = true});
  EXPECT_NEAR(falling.chosen(0.1), 2, 1e-12);
  EXPECT_NEAR(falling.chosen(100), 2, 1e-12);
}

TEST(Outliers, ByHand) {
  // Even in ln x about 0, so that the trend is flat. ln C is r in the middle, then 0, 1, 2 to both sides: of the sorted
  // 0, 0, 1, 1, 2, 2, r the quartiles are 0.5 and 2, and the fence is 2 + 1.5·1.5 = 4.25.
  const auto points = [](double r) {
    Points result;
    const std::vector<double> logs = {2, 1, 0, r, 0, 1, 2};
    for (int i = 0; i < 7; ++i) result.push_back({std::exp(i - 3.0), std::exp(logs[static_cast<size_t>(i)])});
    return result;
  };
  Points inside = points(4.2), dropped;
  drop_outliers(inside, dropped, 1);
  EXPECT_EQ(inside.size(), 7U);
  EXPECT_TRUE(dropped.empty());
  Points outside = points(4.3);
  drop_outliers(outside, dropped, 1);
  EXPECT_EQ(outside.size(), 6U);
  ASSERT_EQ(dropped.size(), 1U);
  EXPECT_DOUBLE_EQ(dropped[0].bound, std::exp(4.3));
}

TEST(Outliers, OneStepOfTheGridIsNone) {
  const Points jump = {{1, 1}, {2, 1}, {4, 4}, {8, 1}, {16, 1}};
  Points points = jump, dropped;
  drop_outliers(points, dropped, 4);
  EXPECT_EQ(points, jump);
  drop_outliers(points, dropped, 2);
  EXPECT_EQ(dropped, (Points{{4, 4}}));
  EXPECT_EQ(points.size(), 4U);
}

TEST(Outliers, TheEndsOfASteepCurveAreKept) {
  Points points = on({0.01, 0.1, 1, 10, 100}, [](double x) { return 5 * x; }), dropped;
  drop_outliers(points, dropped, 1);
  EXPECT_TRUE(dropped.empty());
  points[2].bound = 5000;
  drop_outliers(points, dropped, 2);
  EXPECT_EQ(dropped, (Points{{1, 5000}}));
}

TEST(Outliers, OfThreePointsNoneIsDropped) {
  Points points = {{1, 1}, {2, 1e9}, {3, 1}}, dropped;
  drop_outliers(points, dropped, 1);
  EXPECT_EQ(points.size(), 3U);
}

TEST(Outliers, DroppedPointsDoNotBendTheCurve) {
  Points points = on({0.1, 0.2, 0.5, 1, 2, 5}, [](double x) { return 4 * std::sqrt(x); });
  points[3].bound = 400;
  const CurveFit fit = fit_curve(points, {.outliers = true, .grain = 2});
  EXPECT_EQ(fit.dropped, (Points{{1, 400}}));
  EXPECT_NEAR(fit.chosen(1), 4, 1e-6);
  EXPECT_EQ(fit_curve(points, kPlain).kept.size(), 6U);
}

// Whatever the points are, the file's curve loads, stays between the bounds that were tried, and under `monotone` never
// falls.
TEST(CurveFit, AnyPointsGiveAUsableCurve) {
  RandomStream stream(7, "points");
  const std::vector<double> bounds = {0.01, 0.1, 1, 10, 100};
  for (int trial = 0; trial < 120; ++trial) {
    Points points;
    const int count = 1 + trial % 8;
    for (int i = 0; i < count; ++i) {
      points.push_back({std::exp(3 * stream.normal()), bounds[static_cast<size_t>(stream.uniform() * 5)]});
    }
    for (const bool monotone : {false, true}) {
      const FitRules rules{.outliers = trial % 2 == 0, .monotone = monotone, .least = 0.01, .most = 100, .grain = 10};
      const CurveFit fit = fit_curve(points, rules);
      EXPECT_EQ(fit.kept.size() + fit.dropped.size(), points.size());
      const ClipCurve curve = clip_curve_from(to_json(fit.chosen), "fit");
      double previous = 0;
      for (double x = 1e-6; x < 1e6; x *= 1.3) {
        ASSERT_GE(curve(x), 0.01 * (1 - 1e-12));
        ASSERT_LE(curve(x), 100 * (1 + 1e-12));
        ASSERT_TRUE(!monotone || curve(x) >= previous * (1 - 1e-12));
        previous = curve(x);
      }
    }
  }
}

}  // namespace
}  // namespace sotto::methods
