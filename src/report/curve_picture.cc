#include "report/curve_picture.h"

#include "base/error.h"
#include "base/files.h"
#include "report/canvas.h"

#include <algorithm>
#include <cmath>

namespace sotto::report {
namespace {

constexpr double kPlotWidth = 600.0;
constexpr double kPlotHeight = 400.0;
constexpr double kHeadHeight = 62.0;
constexpr double kLabels = 58.0;  // room left of the plot and below it for what the axes say
constexpr double kLegendGap = 34.0;
constexpr double kPointRadius = 5.0;
constexpr double kTriedRadius = 7.0;
constexpr double kPadding = 0.06;  // of an axis, beyond what it must show
constexpr Colour kUntouched{0.945, 0.953, 0.962};
constexpr Colour kTried{0.56, 0.66, 0.77};
constexpr Colour kDropped{0.78, 0.20, 0.22};

// Where values lie between the two ends of an axis.
class Axis {
 public:
  explicit Axis(const std::vector<double>& shown) {
    const auto [least, most] = std::minmax_element(shown.begin(), shown.end());
    logarithmic_ = *most > 10.0 * *least;
    const double low = scaled(*least), high = scaled(*most);
    const double padding = high > low ? kPadding * (high - low) : std::max(0.5 * std::abs(high), 0.1);
    low_ = low - padding;
    high_ = high + padding;
  }

  double share(double value) const { return (scaled(value) - low_) / (high_ - low_); }
  double value(double share) const { return unscaled(low_ + share * (high_ - low_)); }

  std::vector<double> ticks() const { return logarithmic_ ? logarithmic_ticks() : linear_ticks(); }

 private:
  double scaled(double value) const { return logarithmic_ ? std::log10(value) : value; }
  double unscaled(double value) const { return logarithmic_ ? std::pow(10.0, value) : value; }

  std::vector<double> logarithmic_ticks() const {
    const bool wide = high_ - low_ > 4.0;
    std::vector<double> result;
    for (auto decade = static_cast<int>(std::floor(low_)); decade <= high_; ++decade) {
      for (const double step : {1.0, 2.0, 5.0}) {
        if (wide && step > 1.0) continue;
        const double at = decade + std::log10(step);
        if (at >= low_ && at <= high_) result.push_back(step * std::pow(10.0, decade));
      }
    }
    return result;
  }

  std::vector<double> linear_ticks() const {
    constexpr double kWanted = 6.0;
    const double raw = (high_ - low_) / kWanted;
    const double decade = std::pow(10.0, std::floor(std::log10(raw)));
    const double step = decade * (raw <= 2.0 * decade ? 2.0 : raw <= 5.0 * decade ? 5.0 : 10.0);
    std::vector<double> result;
    for (double tick = std::max(0.0, std::ceil(low_ / step)); tick * step <= high_; tick += 1.0) {
      result.push_back(tick * step);
    }
    return result;
  }

  bool logarithmic_ = false;
  double low_ = 0, high_ = 1;
};

Colour colour_of(methods::CurveFamily family) {
  if (family == methods::CurveFamily::kPower) return {0.87, 0.49, 0.13};
  if (family == methods::CurveFamily::kQuadratic) return {0.11, 0.56, 0.44};
  if (family == methods::CurveFamily::kPiecewiseLinear) return {0.49, 0.36, 0.70};
  return kDeep;
}

// "C = 1.2 ε^0.45".
std::string formula(const methods::ClipCurve& curve) {
  const std::string x = curve.axis == methods::CurveAxis::kEpsilon ? "ε" : "s";
  const auto& c = curve.coefficients;
  if (curve.family == methods::CurveFamily::kConstant) return fmt::format("C = {:.4g}", c[0]);
  if (curve.family == methods::CurveFamily::kPower) {
    // A fit that finds no slope gives an exponent that is all rounding.
    const double exponent = std::abs(c[1]) < 5e-4 ? 0 : c[1];
    return exponent == 0 ? fmt::format("C = {:.4g}", c[0]) : fmt::format("C = {:.4g} {}^{:.3g}", c[0], x, exponent);
  }
  if (curve.family == methods::CurveFamily::kQuadratic) {
    return fmt::format("C = {:.4g} {}² {} {:.4g} {} {} {:.4g}", c[0], x, c[1] < 0 ? "−" : "+", std::abs(c[1]), x,
                       c[2] < 0 ? "−" : "+", std::abs(c[2]));
  }
  return fmt::format("{} knots", curve.knots.size());
}

struct Line {
  methods::ClipCurve curve;
  std::string name;
  bool chosen = false;
};

std::string caption(const Line& line) {
  return formula(line.curve) + (line.chosen ? ", chosen" : "");
}

std::vector<Line> lines_of(const methods::CurveFit& fit) {
  std::vector<Line> lines;
  bool found = false;
  for (const methods::FamilyFit& family : fit.families) {
    if (!family.curve) continue;
    Line line{*family.curve, settings::word(family.family), *family.curve == fit.chosen};
    if (family.r_squared) line.name += fmt::format("   R² {:.3f}", *family.r_squared);
    found = found || line.chosen;
    lines.push_back(std::move(line));
  }
  if (!found) lines.push_back({fit.chosen, settings::word(fit.chosen.family), true});
  std::stable_partition(lines.begin(), lines.end(), [](const Line& line) { return !line.chosen; });
  return lines;
}

class CurvePicture {
 public:
  explicit CurvePicture(const CurveSummary& summary)
      : summary_(summary), lines_(lines_of(summary.fit)), x_(summary.x), y_(summary.bounds) {
    left_ = kMargin + kLabels;
    top_ = kMargin + kHeadHeight;
    right_ = left_ + kPlotWidth;
    bottom_ = top_ + kPlotHeight;
  }

  void write(const fs::path& path) const {
    Canvas ruler(1.0, 1.0);
    double text = 0;
    for (const Line& line : lines_) {
      text = std::max({text, ruler.text_width(line.name, kText, true), ruler.text_width(caption(line), kSmallText)});
    }
    const double legend = std::max(text, 170.0) + 34.0;
    const double head =
        std::max(ruler.text_width(summary_.title, kTitle, true), ruler.text_width(summary_.subtitle, kText));
    Canvas canvas(std::max(right_ + kLegendGap + legend, kMargin + head) + kMargin, bottom_ + kLabels + kMargin);
    canvas.text(kMargin, kMargin + kTitle, summary_.title, kTitle, kInk, Align::kLeft, true);
    canvas.text(kMargin, kMargin + kTitle + 20.0, summary_.subtitle, kText, kQuiet);
    draw_axes(canvas);
    draw_tried(canvas);
    for (const Line& line : lines_) draw_line(canvas, line);
    for (const auto& point : summary_.fit.dropped) draw_dropped(canvas, at(point.x, point.bound));
    for (const auto& point : summary_.fit.kept) draw_kept(canvas, at(point.x, point.bound));
    draw_legend(canvas, right_ + kLegendGap);
    canvas.write(path);
  }

 private:
  Position at(double x, double bound) const {
    return {left_ + kPlotWidth * x_.share(x), bottom_ - kPlotHeight * y_.share(bound)};
  }

  void draw_axes(Canvas& canvas) const {
    for (const double tick : x_.ticks()) {
      const double x = left_ + kPlotWidth * x_.share(tick);
      canvas.line(x, top_, x, bottom_, kGrid);
      canvas.text(x, bottom_ + 18.0, fmt::format("{:.4g}", tick), kSmallText, kInk, Align::kCentre);
    }
    for (const double tick : y_.ticks()) {
      const double y = bottom_ - kPlotHeight * y_.share(tick);
      canvas.line(left_, y, right_, y, kGrid);
      canvas.text(left_ - 8.0, y + 4.0, fmt::format("{:.4g}", tick), kSmallText, kInk, Align::kRight);
    }
    canvas.line(left_, bottom_, right_, bottom_, kQuiet, {.width = 1.0});
    canvas.line(left_, top_, left_, bottom_, kQuiet, {.width = 1.0});
    const std::string budget =
        summary_.fit.chosen.axis == methods::CurveAxis::kEpsilon ? "privacy budget ε" : "signal over noise of a step s";
    canvas.text((left_ + right_) / 2.0, bottom_ + 44.0, budget, kText, kInk, Align::kCentre);
    canvas.upright_text(kMargin + 10.0, (top_ + bottom_) / 2.0, "clipping bound C", kText, kInk);
  }

  // The square keeps the best of a budget apart from the merely good.
  static Colour shade(double share) { return mix(kUntouched, kTried, share * share); }

  void draw_tried(Canvas& canvas) const {
    for (size_t i = 0; i < summary_.accuracy.size(); ++i) {
      const auto& row = summary_.accuracy[i];
      const auto [least, most] = std::minmax_element(row.begin(), row.end());
      for (size_t j = 0; j < row.size(); ++j) {
        const Position place = at(summary_.x[i], summary_.bounds[j]);
        const double share = *most > *least ? (row[j] - *least) / (*most - *least) : 1.0;
        canvas.fill_disc(place.x, place.y, kTriedRadius, shade(share));
      }
    }
  }

  void draw_line(Canvas& canvas, const Line& line) const {
    constexpr int kSteps = 600;
    std::vector<Position> path;
    for (int i = 0; i <= kSteps; ++i) {
      const double x = x_.value(static_cast<double>(i) / kSteps);
      if (x > 0) path.push_back(at(x, line.curve(x)));
    }
    canvas.path(path, colour_of(line.curve.family), stroke_of(line));
  }

  static Stroke stroke_of(const Line& line) { return {.width = line.chosen ? 3.0 : 1.4, .dashed = !line.chosen}; }

  static void draw_kept(Canvas& canvas, const Position& place) {
    canvas.fill_disc(place.x, place.y, kPointRadius + 1.5, kWhite);
    canvas.fill_disc(place.x, place.y, kPointRadius, kInk);
  }

  static void draw_dropped(Canvas& canvas, const Position& place) {
    const double arm = kPointRadius * 0.7;
    const Stroke stroke{.width = 1.6};
    canvas.fill_disc(place.x, place.y, kPointRadius + 0.8, kWhite);
    canvas.circle(place.x, place.y, kPointRadius, kDropped, stroke);
    canvas.line(place.x - arm, place.y - arm, place.x + arm, place.y + arm, kDropped, stroke);
    canvas.line(place.x - arm, place.y + arm, place.x + arm, place.y - arm, kDropped, stroke);
  }

  void draw_legend(Canvas& canvas, double x) const {
    constexpr double kMiddle = 12.0;  // of the column of signs
    const double text = x + 34.0;
    double y = top_ + 8.0;
    std::vector<Line> entries = lines_;
    std::rotate(entries.begin(), entries.end() - 1, entries.end());
    for (const Line& line : entries) {
      canvas.line(x, y - 4.0, x + 2 * kMiddle, y - 4.0, colour_of(line.curve.family), stroke_of(line));
      canvas.text(text, y, line.name, kText, kInk, Align::kLeft, line.chosen);
      canvas.text(text, y + 16.0, caption(line), kSmallText, kQuiet);
      y += 42.0;
    }
    y += 8.0;
    draw_kept(canvas, {x + kMiddle, y - 4.0});
    canvas.text(text, y, "best bound of a budget", kSmallText, kInk);
    y += 24.0;
    if (!summary_.fit.dropped.empty()) {
      draw_dropped(canvas, {x + kMiddle, y - 4.0});
      canvas.text(text, y, "dropped as an outlier", kSmallText, kInk);
      y += 24.0;
    }
    y += 10.0;
    canvas.text(x, y, "accuracy among a budget's bounds", kSmallText, kQuiet);
    y += 22.0;
    constexpr int kShades = 5;
    for (int i = 0; i < kShades; ++i) {
      canvas.fill_disc(x + kTriedRadius + 20.0 * i, y - 4.0, kTriedRadius,
                       shade(static_cast<double>(i) / (kShades - 1)));
    }
    canvas.text(x + 20.0 * kShades + 6.0, y, "lowest to highest", kSmallText, kInk);
  }

  const CurveSummary& summary_;
  const std::vector<Line> lines_;  // the chosen one last, on top
  const Axis x_, y_;
  double left_ = 0, top_ = 0, right_ = 0, bottom_ = 0;
};

}  // namespace

void write_curve_picture(const fs::path& path, const CurveSummary& summary) {
  SOTTO_INVARIANT(!summary.x.empty() && !summary.bounds.empty());
  CurvePicture(summary).write(path);
}

}  // namespace sotto::report
