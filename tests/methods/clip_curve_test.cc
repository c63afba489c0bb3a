#include "methods/dpsgd/clip_curve.h"

#include "../support/expect_user_error.h"
#include "../support/temp_folder.h"
#include "base/files.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <limits>

namespace sotto::methods {
namespace {

using nlohmann::json;

ClipCurve curve_of(const std::string& text) {
  return clip_curve_from(json::parse(text), "here");
}

// From far below to far above any budget.
std::vector<double> whole_axis() {
  std::vector<double> xs;
  for (int i = 0; i <= 1200; ++i) xs.push_back(std::pow(10.0, -6 + i / 100.0));
  xs.push_back(std::numeric_limits<double>::denorm_min());
  xs.push_back(std::numeric_limits<double>::max());
  std::sort(xs.begin(), xs.end());
  return xs;
}

TEST(ClipCurve, EveryFamilyAsWritten) {
  EXPECT_EQ(curve_of(R"({"family":"constant","coefficients":[3]})")(0.5), 3.0);
  const ClipCurve quadratic = curve_of(R"({"family":"quadratic","coefficients":[2,-3,4],"low":0.5,"high":10})");
  EXPECT_DOUBLE_EQ(quadratic(3), 2 * 9 - 9 + 4);
  const ClipCurve power = curve_of(R"({"family":"power","coefficients":[3,0.5],"low":1,"high":100})");
  EXPECT_DOUBLE_EQ(power(16), 12.0);
  const ClipCurve lines = curve_of(R"({"family":"piecewise-linear","knots":[1,2,6],"values":[1,5,7]})");
  EXPECT_DOUBLE_EQ(lines(1.25), 2.0);
  EXPECT_DOUBLE_EQ(lines(3), 5.5);
  EXPECT_DOUBLE_EQ(lines(2), 5.0);
  const ClipCurve isotonic = curve_of(R"({"family":"isotonic","knots":[1,4,100],"values":[2,8,8]})");
  EXPECT_DOUBLE_EQ(isotonic(2), 4.0);  // half way in the logarithms of both
  EXPECT_DOUBLE_EQ(isotonic(20), 8.0);
}

TEST(ClipCurve, IsClampedAndNotExtrapolated) {
  const ClipCurve quadratic = curve_of(R"({"family":"quadratic","coefficients":[0,1,0],"low":2,"high":10})");
  EXPECT_EQ(quadratic(1e-9), 2.0);
  EXPECT_EQ(quadratic(1e9), 10.0);
  const ClipCurve lines = curve_of(R"({"family":"piecewise-linear","knots":[1,2],"values":[3,5]})");
  EXPECT_EQ(lines(0.01), 3.0);
  EXPECT_EQ(lines(100), 5.0);
  const ClipCurve limited =
      curve_of(R"({"family":"power","coefficients":[1,1],"low":0.001,"high":1000,"least":0.5,"most":20})");
  EXPECT_EQ(limited(0.01), 0.5);
  EXPECT_EQ(limited(7), 7.0);
  EXPECT_EQ(limited(500), 20.0);
}

TEST(ClipCurve, ThePapersCurvesArePositiveAndNeverFall) {
  for (const std::string& name : built_in_curves()) {
    const ClipCurve curve = find_clip_curve(name);
    double previous = 0;
    for (const double x : whole_axis()) {
      const double bound = curve(x);
      ASSERT_TRUE(std::isfinite(bound)) << name << " at " << x;
      ASSERT_GT(bound, 0) << name << " at " << x;
      ASSERT_GE(bound, previous) << name << " at " << x;
      previous = bound;
    }
    EXPECT_EQ(clip_curve_from(to_json(curve), name), curve);
  }
}

TEST(ClipCurve, ThePapersCurvesAsPrinted) {
  const ClipCurve mnist = find_clip_curve("paper-mnist");
  EXPECT_NEAR(mnist(0.1), 1.4004 + 1.20719 - 0.055235, 1e-12);
  EXPECT_NEAR(mnist(1), 7.9488, 1e-12);
  EXPECT_DOUBLE_EQ(mnist(2.4), mnist(1.0928));  // the parabola itself is negative there
  EXPECT_LT(-5.5235 * 2.4 * 2.4 + 12.0719 * 2.4 + 1.4004, 0);
  EXPECT_DOUBLE_EQ(mnist(0.01), mnist(0.05));
  const ClipCurve cifar = find_clip_curve("paper-cifar10");
  EXPECT_NEAR(cifar(1), 0.0426 + 1.29 + 1.106, 1e-12);
  EXPECT_DOUBLE_EQ(cifar(100), cifar(5));
}

TEST(ClipCurve, SurvivesJsonUnchanged) {
  for (const char* text :
       {R"({"axis":"noise","coefficients":[0.1],"family":"constant"})",
        R"({"axis":"epsilon","coefficients":[-1.5,2.0,1.25],"family":"quadratic","high":1.0,"low":0.0,"most":2.0})",
        R"({"axis":"epsilon","coefficients":[2.0,-0.3],"family":"power","high":9.0,"least":0.5,"low":0.1})",
        R"({"axis":"epsilon","family":"piecewise-linear","knots":[0.1,1.0],"least":0.5,"values":[-1.0,4.0]})",
        R"({"axis":"noise","family":"isotonic","knots":[0.1,1.0,3.0],"values":[1.0,1.0,4.0]})"}) {
    EXPECT_EQ(to_json(curve_of(text)).dump(), text);
  }
}

TEST(ClipCurve, MalformedCurvesAreUserErrors) {
  struct Case {
    const char* text;
    const char* part;
  };
  for (const Case& c : std::vector<Case>{
           {"3", "here: a curve is a table"},
           {"[1]", "a curve is a table"},
           {"null", "a curve is a table"},
           {"{}", "family has no default"},
           {R"({"family":"cubic","coefficients":[1]})", "family must be one of"},
           {R"({"family":3})", "family must be text"},
           {R"({"family":"constant"})", "must be one number"},
           {R"({"family":"constant","coefficients":[0]})", "the bound is 0"},
           {R"({"family":"constant","coefficients":[-1]})", "the bound is -1"},
           {R"({"family":"constant","coefficients":[1,2]})", "must be one number"},
           {R"({"family":"constant","coefficients":1})", "coefficients must be a list"},
           {R"({"family":"constant","coefficients":["1"]})", "coefficients must be a number"},
           {R"({"family":"constant","coefficients":[1],"knots":[1,2]})", "knots is not a known key"},
           {R"({"family":"constant","coefficients":[1],"axis":"delta"})", "axis must be one of"},
           {R"({"family":"quadratic","coefficients":[1,2,3]})", "low has no default"},
           {R"({"family":"quadratic","coefficients":[1,2,3],"low":1,"high":1})", "high must be greater than low"},
           {R"({"family":"quadratic","coefficients":[1,2,3],"low":-1,"high":1})", "low must be at least 0"},
           {R"({"family":"quadratic","coefficients":[-5.5235,12.0719,1.4004],"low":0,"high":3})", "the bound is -"},
           // Positive at both ends, negative between them.
           {R"({"family":"quadratic","coefficients":[1,-4,3],"low":0.5,"high":3.5})", "the bound is -1 at epsilon = 2"},
           {R"({"family":"quadratic","coefficients":[1e308,1e308,1],"low":1,"high":10})", "must be at most 3.4e+38"},
           {R"({"family":"power","coefficients":[1,2,3],"low":1,"high":2})", "must be 2 numbers"},
           {R"({"family":"power","coefficients":[-1,1],"low":1,"high":2})", "the bound is -"},
           {R"({"family":"power","coefficients":[1,-1],"low":0,"high":2})", "the bound is inf"},
           {R"({"family":"power","coefficients":[1,1],"low":0,"high":2})", "the bound is 0"},
           {R"({"family":"power","coefficients":[1,1],"low":1,"high":2,"least":3,"most":2})", "most is below least"},
           {R"({"family":"piecewise-linear","knots":[1],"values":[1]})", "at least two"},
           {R"({"family":"piecewise-linear","knots":[2,1],"values":[1,2]})", "must rise"},
           {R"({"family":"piecewise-linear","knots":[1,1],"values":[1,2]})", "must rise"},
           {R"({"family":"piecewise-linear","knots":[0,1],"values":[1,2]})", "knots must be greater than 0"},
           {R"({"family":"piecewise-linear","knots":[1,2],"values":[1]})", "1 numbers for 2 knots"},
           {R"({"family":"piecewise-linear","knots":[1,2],"values":[1,-2]})", "the bound is -2"},
           {R"({"family":"isotonic","knots":[1,2],"values":[2,1]})", "must not fall"},
           {R"({"family":"isotonic","knots":[1,2],"values":[-1,1],"least":1})", "values must be greater than 0"},
       }) {
    SCOPED_TRACE(c.text);
    EXPECT_USER_ERROR(clip_curve_from(json::parse(c.text), "here"), c.part);
  }
  const json nan = {{"family", "constant"}, {"coefficients", {std::nan("")}}};
  EXPECT_USER_ERROR(clip_curve_from(nan, "here"), "must be a finite number");
}

TEST(ClipCurve, IsFoundByNameFileOrFolder) {
  const test::TempFolder folder;
  write_file_atomically(folder / "curve.json", R"({"curve": {"family": "constant", "coefficients": [7]}, "fit": {}})");
  EXPECT_EQ(find_clip_curve((folder / "curve.json").string())(1), 7.0);
  EXPECT_EQ(find_clip_curve(folder.path().string())(1), 7.0);
  EXPECT_USER_ERROR(find_clip_curve("paper-mnst"), "did you mean 'paper-mnist'?");
  EXPECT_USER_ERROR(find_clip_curve((folder / "none.json").string()), "make one with sotto fit");
  for (const char* text : {"", "not json", "[]", "{}", R"({"Curve": {}})"}) {
    write_file_atomically(folder / "bad.json", std::string_view(text));
    EXPECT_USER_ERROR(find_clip_curve((folder / "bad.json").string()), "bad.json: not a curve file");
  }
  write_file_atomically(folder / "bad.json", R"({"curve": {"family": "cube"}})");
  EXPECT_USER_ERROR(find_clip_curve((folder / "bad.json").string()), "bad.json: family must be one of");
}

}  // namespace
}  // namespace sotto::methods
