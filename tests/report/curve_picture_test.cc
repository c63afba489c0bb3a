#include "report/curve_picture.h"

#include "base/error.h"
#include "read_png.h"

#include <cmath>

namespace sotto::report {
namespace {

CurveSummary summary(const std::vector<methods::CurvePoint>& points, const methods::FitRules& rules) {
  CurveSummary result;
  result.title = "Which clipping bound suits which budget";
  result.subtitle = "pac-dp, cnn on synthetic-digits: 20 clients, 10 rounds, mean of 3 runs";
  result.fit = methods::fit_curve(points, rules);
  result.bounds = {0.1, 0.3, 1, 3, 10};
  for (const auto& point : points) {
    result.x.push_back(point.x);
    std::vector<double> row;
    for (const double bound : result.bounds) row.push_back(0.8 - 0.1 * std::abs(std::log(bound / point.bound)));
    result.accuracy.push_back(row);
  }
  return result;
}

at::Tensor draw(const CurveSummary& curve) {
  const TemporaryFolder folder;
  write_curve_picture(folder / "curve.png", curve);
  return read_png(folder / "curve.png", PNG_FORMAT_RGB, 3).to(at::kLong);
}

int64_t pixels(const at::Tensor& picture, int64_t red, int64_t green, int64_t blue) {
  const at::Tensor colour = at::tensor({red, green, blue}, at::kLong);
  return ((picture - colour).abs().amax(2) <= 2).sum().item<int64_t>();
}

int64_t dropped_pixels(const at::Tensor& picture) {
  return pixels(picture, 199, 51, 56);
}

const std::vector<methods::CurvePoint> kPoints = {{0.05, 0.1}, {0.1, 0.3}, {0.5, 0.3}, {1, 1}, {2, 3}, {5, 3}};

TEST(CurvePicture, DroppedPointsAreMarked) {
  EXPECT_EQ(dropped_pixels(draw(summary(kPoints, {.outliers = false}))), 0);
  auto points = kPoints;
  points[1].bound = 10;
  const CurveSummary with_outlier = summary(points, {.grain = 2});
  ASSERT_EQ(with_outlier.fit.dropped.size(), 1U);
  EXPECT_GT(dropped_pixels(draw(with_outlier)), 40);
}

TEST(CurvePicture, TheChosenLineIsTheHeaviest) {
  const auto orange = [](const at::Tensor& picture) { return pixels(picture, 222, 125, 33); };
  CurveSummary curve = summary(kPoints, {.outliers = false});
  for (const auto& family : curve.fit.families) {
    if (family.family == methods::CurveFamily::kPower) curve.fit.chosen = *family.curve;
  }
  const int64_t chosen = orange(draw(curve));
  curve.fit.chosen = methods::ClipCurve{};
  curve.fit.chosen.coefficients = {1.0};
  EXPECT_GT(chosen, 2 * orange(draw(curve)));
}

TEST(CurvePicture, FewPointsAndNarrowRangesAreDrawn) {
  CurveSummary one = summary({{1, 1}}, {});
  one.bounds = {1};
  one.accuracy = {{0.5}};
  EXPECT_GT(pixels(draw(one), 23, 69, 115), 1000);  // the constant
  EXPECT_GT(draw(summary({{1, 1}, {2, 3}}, {.axis = methods::CurveAxis::kSignalToNoise})).numel(), 0);
  EXPECT_GT(draw(summary(kPoints, {.monotone = true})).numel(), 0);
}

TEST(CurvePicture, StaysBoundedOverAnyRange) {
  CurveSummary wide = summary({{1e-12, 0.1}, {1, 1}, {1e12, 10}}, {});
  const at::Tensor picture = draw(wide);
  EXPECT_LT(picture.size(0), 4000);
  EXPECT_LT(picture.size(1), 4000);
}

TEST(CurvePicture, UnwritableFolderIsTheUsersError) {
  const TemporaryFolder folder;
  EXPECT_THROW(write_curve_picture(folder / "missing" / "p.png", summary(kPoints, {})), UserError);
}

}  // namespace
}  // namespace sotto::report
