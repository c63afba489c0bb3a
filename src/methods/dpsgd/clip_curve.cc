#include "methods/dpsgd/clip_curve.h"

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "settings/section.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

namespace sotto::methods {
namespace {

using nlohmann::json;

bool has_knots(const ClipCurve& curve) {
  return curve.family == CurveFamily::kPiecewiseLinear || curve.family == CurveFamily::kIsotonic;
}

double quadratic(const std::vector<double>& c, double x) {
  return (c[0] * x + c[1]) * x + c[2];
}

// Where αx²+βx+γ turns over; NaN for a straight line.
double vertex(const std::vector<double>& c) {
  return c[0] == 0 ? std::numeric_limits<double>::quiet_NaN() : -c[1] / (2 * c[0]);
}

// The value at x of the line through two points, exactly theirs at both ends.
double on_line(double x0, double y0, double x1, double y1, double x) {
  const double share = (x - x0) / (x1 - x0);
  return (1 - share) * y0 + share * y1;
}

double between_knots(const ClipCurve& curve, double x) {
  x = std::clamp(x, curve.knots.front(), curve.knots.back());
  const auto above = std::upper_bound(curve.knots.begin() + 1, curve.knots.end() - 1, x);
  const auto i = static_cast<size_t>(above - curve.knots.begin());
  const double x0 = curve.knots[i - 1], x1 = curve.knots[i];
  const double y0 = curve.values[i - 1], y1 = curve.values[i];
  if (curve.family == CurveFamily::kPiecewiseLinear || y0 == y1) return on_line(x0, y0, x1, y1, x);
  return std::exp(on_line(std::log(x0), std::log(y0), std::log(x1), std::log(y1), std::log(x)));
}

void check_answer(const ClipCurve& curve, double x, const std::string& where) {
  const double bound = curve(x);
  if (!(bound > 0) || !std::isfinite(bound)) {
    fail_user("{}: the bound is {} at {} = {}; narrow low and high, or give a positive least", where, bound,
              settings::word(curve.axis), x);
  }
}

void check_answers(const ClipCurve& curve, const std::string& where) {
  if (has_knots(curve)) {
    for (const double knot : curve.knots) check_answer(curve, knot, where);
    return;
  }
  check_answer(curve, curve.low, where);
  check_answer(curve, curve.high, where);
  if (curve.family != CurveFamily::kQuadratic) return;
  const double turn = vertex(curve.coefficients);
  if (turn > curve.low && turn < curve.high) check_answer(curve, turn, where);
}

void read_range(settings::Section& section, ClipCurve& curve) {
  curve.low = section.required_number("low", settings::kNonNegative, "0.1");
  curve.high = section.required_number("high", settings::kPositive, "1.0");
  if (curve.high <= curve.low) section.fail("high", fmt::format("must be greater than low, {}", curve.low));
}

void read_coefficients(settings::Section& section, ClipCurve& curve, size_t count, const std::string& names) {
  curve.coefficients = section.numbers("coefficients", {});
  if (curve.coefficients.size() != count) {
    section.fail("coefficients", fmt::format("of a {} curve must be {} ({}), not {}", settings::word(curve.family),
                                             count == 1 ? "one number" : fmt::format("{} numbers", count), names,
                                             curve.coefficients.size()));
  }
}

void read_knots(settings::Section& section, ClipCurve& curve) {
  curve.knots = section.numbers("knots", {}, settings::kPositive);
  curve.values =
      section.numbers("values", {}, curve.family == CurveFamily::kIsotonic ? settings::kPositive : settings::kAny);
  if (curve.knots.size() < 2) section.fail("knots", "must be at least two numbers");
  if (!std::is_sorted(curve.knots.begin(), curve.knots.end(), std::less_equal<>())) {
    section.fail("knots", "must rise from one to the next");
  }
  if (curve.values.size() != curve.knots.size()) {
    section.fail("values", fmt::format("has {} numbers for {} knots", curve.values.size(), curve.knots.size()));
  }
  if (curve.family == CurveFamily::kIsotonic && !std::is_sorted(curve.values.begin(), curve.values.end())) {
    section.fail("values", "of an isotonic curve must not fall");
  }
  curve.low = curve.knots.front();
  curve.high = curve.knots.back();
}

struct BuiltIn {
  std::string name;
  ClipCurve curve;
};

const std::vector<BuiltIn>& built_ins() {
  static const std::vector<BuiltIn> curves = [] {
    ClipCurve mnist{
        .family = CurveFamily::kQuadratic, .coefficients = {-5.5235, 12.0719, 1.4004}, .knots = {}, .values = {}};
    mnist.low = 0.05;
    mnist.high = vertex(mnist.coefficients);
    ClipCurve cifar{
        .family = CurveFamily::kQuadratic, .coefficients = {0.0426, 1.29, 1.106}, .knots = {}, .values = {}};
    cifar.low = 0.5;
    cifar.high = 5.0;
    return std::vector<BuiltIn>{{"paper-mnist", mnist}, {"paper-cifar10", cifar}};
  }();
  return curves;
}

json parse_curve_file(const fs::path& file) {
  const json value = json::parse(read_file(file), nullptr, false);
  if (!value.is_object() || !value.contains("curve")) {
    fail_user("{}: not a curve file: it must be JSON with an entry \"curve\", as sotto fit writes it", file.string());
  }
  return value["curve"];
}

}  // namespace

double ClipCurve::operator()(double x) const {
  double bound = 0;
  if (has_knots(*this)) {
    bound = between_knots(*this, x);
  } else if (family == CurveFamily::kConstant) {
    bound = coefficients[0];
  } else {
    x = std::clamp(x, low, high);
    bound =
        family == CurveFamily::kQuadratic ? quadratic(coefficients, x) : coefficients[0] * std::pow(x, coefficients[1]);
  }
  if (least > 0) bound = std::max(bound, least);
  return most > 0 ? std::min(bound, most) : bound;
}

json to_json(const ClipCurve& curve) {
  json value = {{"axis", settings::word(curve.axis)}, {"family", settings::word(curve.family)}};
  if (has_knots(curve)) {
    value["knots"] = curve.knots;
    value["values"] = curve.values;
  } else {
    value["coefficients"] = curve.coefficients;
  }
  if (curve.family == CurveFamily::kQuadratic || curve.family == CurveFamily::kPower) {
    value["low"] = curve.low;
    value["high"] = curve.high;
  }
  if (curve.least > 0) value["least"] = curve.least;
  if (curve.most > 0) value["most"] = curve.most;
  return value;
}

ClipCurve clip_curve_from(const json& value, const std::string& where) {
  if (!value.is_object()) {
    fail_user("{}: a curve is a table such as {{family = \"constant\", coefficients = [1.0]}}, not {}", where,
              value.dump());
  }
  settings::Section section(value, "", std::make_shared<settings::Source>(settings::Source{.file = where, .line = {}}));
  ClipCurve curve;
  curve.axis = section.choice("axis", curve.axis);
  curve.family = section.required_choice<CurveFamily>("family");
  if (curve.family == CurveFamily::kConstant) {
    read_coefficients(section, curve, 1, "the bound");
  } else if (curve.family == CurveFamily::kQuadratic) {
    read_coefficients(section, curve, 3, "α, β, γ of αx²+βx+γ");
    read_range(section, curve);
  } else if (curve.family == CurveFamily::kPower) {
    read_coefficients(section, curve, 2, "a, b of a·x^b");
    read_range(section, curve);
  } else {
    read_knots(section, curve);
  }
  curve.least = section.number("least", curve.least, settings::kNonNegative);
  curve.most = section.number("most", curve.most, settings::kNonNegative);
  if (curve.most > 0 && curve.most < curve.least) section.fail("most", fmt::format("is below least, {}", curve.least));
  section.finish();
  check_answers(curve, where);
  return curve;
}

const std::vector<std::string>& built_in_curves() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> result;
    for (const BuiltIn& entry : built_ins()) result.push_back(entry.name);
    return result;
  }();
  return names;
}

ClipCurve find_clip_curve(const std::string& name_or_file) {
  for (const BuiltIn& entry : built_ins()) {
    if (entry.name == name_or_file) return entry.curve;
  }
  const fs::path path = name_or_file;
  const fs::path file = fs::is_directory(path) ? path / "curve.json" : path;
  if (!fs::exists(file)) {
    fail_user("there is no curve '{}'{}: neither built in ({}) nor a file; make one with sotto fit", name_or_file,
              did_you_mean(name_or_file, built_in_curves()), join(built_in_curves(), ", "));
  }
  return clip_curve_from(parse_curve_file(file), file.string());
}

}  // namespace sotto::methods
