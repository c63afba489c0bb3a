#include "report/partition_picture.h"

#include "base/error.h"
#include "base/files.h"
#include "report/canvas.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

namespace sotto::report {
namespace {

constexpr double kPlotSide = 760.0;  // what the larger side of the plot aims at
constexpr double kLargestCell = 32.0;
constexpr double kSmallestCell = 4.0;
constexpr double kSmallestDiscCell = 15.0;  // below this, cells are shaded
constexpr double kHeadHeight = 62.0;
constexpr double kBarsHeight = 54.0;
constexpr double kBarsGap = 10.0;
constexpr double kLegendWidth = 110.0;
constexpr double kLegendGap = 30.0;
constexpr double kShadingHeight = 120.0;
constexpr const char* kBarsLabel = "records";
constexpr int64_t kMostShown = 200;

constexpr Colour kPale{0.955, 0.965, 0.975};
constexpr Colour kBar{0.62, 0.69, 0.76};

// The square root keeps small counts visible.
Colour shade(double share) {
  constexpr Colour kMiddle{0.36, 0.60, 0.76};
  const double depth = std::sqrt(share);
  return depth < 0.5 ? mix(kPale, kMiddle, 2.0 * depth) : mix(kMiddle, kDeep, 2.0 * depth - 1.0);
}

std::string with_commas(int64_t number) {
  const std::string digits = std::to_string(number);
  std::string grouped;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) grouped += ',';
    grouped += digits[i];
  }
  return grouped;
}

class PartitionPicture {
 public:
  explicit PartitionPicture(const PartitionSummary& summary)
      : summary_(summary),
        counts_(summary.counts.slice(0, 0, kMostShown).slice(1, 0, kMostShown).contiguous()),
        clients_(counts_.size(0)),
        classes_(counts_.size(1)),
        sizes_(summary.counts.sum(1)) {
    SOTTO_INVARIANT(clients_ > 0 && classes_ > 0);
    most_ = std::max<int64_t>(counts_.max().item<int64_t>(), 1);
    const auto larger = static_cast<double>(std::max(clients_, classes_));
    cell_ = std::clamp(std::floor(kPlotSide / larger), kSmallestCell, kLargestCell);
    discs_ = cell_ >= kSmallestDiscCell;
    Canvas ruler(1.0, 1.0);
    double names = ruler.text_width(kBarsLabel, kSmallText);
    for (const std::string& name : summary_.class_names) names = std::max(names, ruler.text_width(name, kText));
    left_ = kMargin + names + 12.0;
    top_ = kMargin + kHeadHeight + kBarsHeight + kBarsGap;
    right_ = left_ + cell_ * static_cast<double>(clients_);
    bottom_ = top_ + cell_ * static_cast<double>(classes_);
    const double text = std::max(ruler.text_width(summary_.title, kTitle, true), ruler.text_width(subtitle(), kText));
    width_ = std::max(right_ + kLegendGap + kLegendWidth, kMargin + text) + kMargin;
    height_ = std::max(bottom_, top_ + legend_height()) + 44.0 + kMargin;
  }

  void write(const fs::path& path) const {
    Canvas canvas(width_, height_);
    canvas.text(kMargin, kMargin + kTitle, summary_.title, kTitle, kInk, Align::kLeft, true);
    canvas.text(kMargin, kMargin + kTitle + 20.0, subtitle(), kText, kQuiet);
    draw_bars(canvas);
    draw_axes(canvas);
    draw_cells(canvas);
    draw_legend(canvas);
    canvas.write(path);
  }

 private:
  double middle(double begin, int64_t index) const { return begin + cell_ * (static_cast<double>(index) + 0.5); }

  std::string subtitle() const {
    std::string text = fmt::format("{} clients × {} classes, {} training records", with_commas(summary_.counts.size(0)),
                                   with_commas(summary_.counts.size(1)), with_commas(sizes_.sum().item<int64_t>()));
    if (summary_.counts.size(0) < summary_.clients) {
      text += fmt::format("; the first of {} clients", with_commas(summary_.clients));
    }
    if (clients_ < summary_.counts.size(0)) text += fmt::format("; {} clients drawn", clients_);
    if (classes_ < summary_.counts.size(1)) text += fmt::format("; {} classes drawn", classes_);
    return text;
  }

  double radius(int64_t count) const {
    const double largest = 0.46 * cell_;
    return std::max(0.9, largest * std::sqrt(static_cast<double>(count) / static_cast<double>(most_)));
  }

  // Every label if there is room for it, else every 2nd, 5th, 10th, …
  static int64_t label_step(double cell, double room) {
    for (int64_t decade = 1;; decade *= 10) {
      for (const int64_t step : {decade, 2 * decade, 5 * decade}) {
        if (cell * static_cast<double>(step) >= room) return step;
      }
    }
  }

  void draw_bars(Canvas& canvas) const {
    const double base = top_ - kBarsGap;
    const int64_t largest = std::max<int64_t>(sizes_.max().item<int64_t>(), 1);
    const at::Tensor sizes = sizes_.contiguous();
    const auto* size = sizes.data_ptr<int64_t>();
    const double bar = std::max(cell_ * 0.7, 1.0);
    for (int64_t i = 0; i < clients_; ++i) {
      const double height = kBarsHeight * static_cast<double>(size[i]) / static_cast<double>(largest);
      canvas.fill_rectangle(middle(left_, i) - bar / 2.0, base - height, bar, height, kBar);
    }
    canvas.line(left_, base, right_, base, kQuiet);
    canvas.text(left_ - 12.0, base, kBarsLabel, kSmallText, kQuiet, Align::kRight);
    canvas.line(left_, base - kBarsHeight, right_, base - kBarsHeight, kGrid);
    canvas.text(right_ + 8.0, base - kBarsHeight + 4.0, with_commas(largest), kSmallText, kQuiet);
  }

  void draw_axes(Canvas& canvas) const {
    const int64_t class_step = label_step(cell_, kText + 3.0);
    for (int64_t c = 0; c < classes_; c += class_step) {
      canvas.text(left_ - 12.0, middle(top_, c) + 4.0, summary_.class_names[static_cast<size_t>(c)], kText, kInk,
                  Align::kRight);
    }
    const double widest = canvas.text_width(std::to_string(clients_ - 1), kSmallText);
    const int64_t client_step = label_step(cell_, widest + 8.0);
    for (int64_t i = 0; i < clients_; i += client_step) {
      canvas.text(middle(left_, i), bottom_ + 17.0, std::to_string(i), kSmallText, kInk, Align::kCentre);
    }
    canvas.text((left_ + right_) / 2.0, bottom_ + 38.0, "client", kText, kQuiet, Align::kCentre);
  }

  void draw_cells(Canvas& canvas) const {
    if (discs_) {
      for (int64_t c = 0; c < classes_; ++c) canvas.line(left_, middle(top_, c), right_, middle(top_, c), kGrid);
      for (int64_t i = 0; i < clients_; ++i) canvas.line(middle(left_, i), top_, middle(left_, i), bottom_, kGrid);
    } else {
      canvas.fill_rectangle(left_, top_, right_ - left_, bottom_ - top_, kPale);
    }
    const auto* counts = counts_.data_ptr<int64_t>();
    for (int64_t i = 0; i < clients_; ++i) {
      for (int64_t c = 0; c < classes_; ++c) {
        if (const int64_t count = counts[i * classes_ + c]; count > 0) draw_cell(canvas, i, c, count);
      }
    }
  }

  void draw_cell(Canvas& canvas, int64_t client, int64_t label, int64_t count) const {
    const double x = middle(left_, client);
    const double y = middle(top_, label);
    if (discs_) {
      canvas.fill_disc(x, y, radius(count), kDeep);
    } else {
      canvas.fill_rectangle(x - cell_ / 2.0, y - cell_ / 2.0, cell_, cell_, share_shade(count));
    }
  }

  Colour share_shade(int64_t count) const { return shade(static_cast<double>(count) / static_cast<double>(most_)); }

  double legend_height() const { return discs_ ? 22.0 + 4.0 * cell_ : 22.0 + kShadingHeight; }

  void draw_legend(Canvas& canvas) const {
    const double x = right_ + kLegendGap;
    canvas.text(x, top_ + 8.0, "records in a cell", kSmallText, kQuiet);
    if (discs_) {
      draw_disc_legend(canvas, x);
    } else {
      draw_shade_legend(canvas, x);
    }
  }

  void draw_disc_legend(Canvas& canvas, double x) const {
    double y = top_ + 22.0;
    int64_t previous = 0;
    for (const int64_t count : {most_, most_ / 4, most_ / 16, int64_t{1}}) {
      if (count == 0 || count == previous) continue;
      canvas.fill_disc(x + cell_ / 2.0, y + cell_ / 2.0, radius(count), kDeep);
      canvas.text(x + cell_ + 8.0, y + cell_ / 2.0 + 4.0, with_commas(count), kSmallText, kInk);
      y += cell_;
      previous = count;
    }
  }

  void draw_shade_legend(Canvas& canvas, double x) const {
    constexpr double kWidth = 14.0;
    const double y = top_ + 22.0;
    constexpr int kSteps = 120;
    for (int i = 0; i < kSteps; ++i) {
      const double share = 1.0 - static_cast<double>(i) / (kSteps - 1);
      canvas.fill_rectangle(x, y + kShadingHeight * i / kSteps, kWidth, kShadingHeight / kSteps + 0.5, shade(share));
    }
    for (const double share : {1.0, 0.5, 0.0}) {
      const auto count = static_cast<int64_t>(std::llround(share * static_cast<double>(most_)));
      canvas.text(x + kWidth + 8.0, y + (1.0 - share) * kShadingHeight + 4.0, with_commas(count), kSmallText, kInk);
    }
  }

  const PartitionSummary& summary_;
  const at::Tensor counts_;
  const int64_t clients_;
  const int64_t classes_;
  const at::Tensor sizes_;  // of all clients in the summary
  int64_t most_;
  double cell_;
  bool discs_;
  double left_, top_, right_, bottom_, width_, height_;
};

}  // namespace

void write_partition_picture(const fs::path& path, const PartitionSummary& summary) {
  PartitionPicture(summary).write(path);
}

}  // namespace sotto::report
