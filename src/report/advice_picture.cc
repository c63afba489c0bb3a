#include "report/advice_picture.h"

#include "report/canvas.h"

#include <fmt/format.h>

#include <algorithm>

namespace sotto::report {
namespace {

constexpr double kHeadRoom = 66.0;
constexpr double kRow = 26.0;
constexpr double kBar = 15.0;
constexpr double kBarLength = 420.0;
constexpr double kFigures = 110.0;  // room behind the longest bar
constexpr Colour kJoined{0.56, 0.66, 0.77};
constexpr Colour kStayed{0.80, 0.82, 0.85};

Colour colour_of(const AdviceBar& bar) {
  if (bar.chosen) return kDeep;
  return bar.alone ? kStayed : kJoined;
}

std::string figure(const AdviceBar& bar) {
  const std::string value = fmt::format("{:.1f} %", 100 * bar.value);
  return bar.spread > 0 ? fmt::format("{} ± {:.1f}", value, 100 * bar.spread) : value;
}

}  // namespace

void write_advice_picture(const std::filesystem::path& path, const AdviceSummary& summary) {
  double names = 0;
  {
    Canvas measure(1, 1);
    for (const AdviceBar& bar : summary.bars) names = std::max(names, measure.text_width(bar.name, kText));
  }
  const double left = kMargin + names + 10, height = kRow * static_cast<double>(summary.bars.size());
  Canvas canvas(left + kBarLength + kFigures + kMargin, kHeadRoom + height + 2 * kMargin);
  canvas.text(kMargin, kMargin + kTitle, summary.title, kTitle, kInk, Align::kLeft, true);
  canvas.text(kMargin, kMargin + kTitle + 20, summary.subtitle, kSmallText, kQuiet);
  const auto x = [&](double accuracy) { return left + kBarLength * std::clamp(accuracy, 0.0, 1.0); };
  for (int tick = 0; tick <= 100; tick += 20) {
    canvas.line(x(tick / 100.0), kHeadRoom, x(tick / 100.0), kHeadRoom + height, kGrid, {.width = 1});
    canvas.text(x(tick / 100.0), kHeadRoom + height + 16, fmt::format("{} %", tick), kSmallText, kQuiet,
                Align::kCentre);
  }
  double y = kHeadRoom;
  for (const AdviceBar& bar : summary.bars) {
    const double middle = y + kRow / 2;
    canvas.text(left - 10, middle + 4, bar.name, kText, kInk, Align::kRight, bar.chosen);
    canvas.fill_rectangle(left, middle - kBar / 2, x(bar.value) - left, kBar, colour_of(bar));
    if (bar.spread > 0)
      canvas.line(x(bar.value - bar.spread), middle, x(bar.value + bar.spread), middle, kInk, {.width = 1.5});
    canvas.text(x(bar.value + bar.spread) + 8, middle + 4, figure(bar), kSmallText, kInk, Align::kLeft, bar.chosen);
    y += kRow;
  }
  canvas.line(x(summary.alone), kHeadRoom - 4, x(summary.alone), y + 4, kInk, {.width = 1, .dashed = true});
  canvas.text(x(summary.alone), kHeadRoom - 8, "clients alone", kSmallText, kInk, Align::kCentre);
  canvas.write(path);
}

}  // namespace sotto::report
