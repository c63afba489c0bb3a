#include "base/progress.h"

#include "base/log.h"
#include "base/terminal.h"
#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

namespace sotto {
namespace {

std::recursive_mutex screen;
std::vector<Progress*> living;  // in the order they were made; guarded by `screen`

constexpr auto kRedraw = std::chrono::milliseconds(100);
constexpr auto kPlainLine = std::chrono::seconds(5);
constexpr auto kGrace = std::chrono::milliseconds(500);
constexpr int kWidestBar = 24;
constexpr int kNarrowestBar = 8;

std::string bar_of(double fraction, int width) {
  const int filled = static_cast<int>(fraction * width);
  std::string bar;
  for (int i = 0; i < width; ++i) bar += i < filled ? "█" : "░";
  return bar;
}

}  // namespace

Progress::Progress(std::string title, int64_t total) : title_(std::move(title)), total_(std::max<int64_t>(total, 1)) {
  const std::lock_guard lock(screen);
  living.push_back(this);
}

Progress::~Progress() {
  const std::lock_guard lock(screen);
  erase();
  std::erase(living, this);
}

Progress* Progress::shown() {
  const auto newest = std::find_if(living.rbegin(), living.rend(),
                                   [](const Progress* bar) { return bar->owner_ == living.front()->owner_; });
  return newest == living.rend() ? nullptr : *newest;
}

void Progress::advance(int64_t units, std::string status) {
  const std::lock_guard lock(screen);
  done_ += units;
  if (!status.empty()) status_ = std::move(status);
  if (log_level() == LogLevel::kQuiet || shown() != this) return;
  const auto now = Clock::now();
  if (now - start_ < kGrace || now - last_drawn_ < (is_interactive() ? Clock::duration(kRedraw) : kPlainLine)) return;
  last_drawn_ = now;
  draw();
}

void Progress::draw() {
  const double elapsed = std::chrono::duration<double>(Clock::now() - start_).count();
  const double fraction = std::min(1.0, static_cast<double>(done_) / static_cast<double>(total_));
  const std::string left = fraction > 0 ? format_duration(elapsed * (1 - fraction) / fraction) + " left" : "";
  const std::string gap = status_.empty() ? "" : "  ";
  if (!is_interactive()) {
    fmt::print(stderr, "{} {}/{} ({:.0f} %), {}{}{}\n", title_, done_, total_, 100 * fraction, left, gap, status_);
    return;
  }
  // A line that wraps could not be erased: the bar gives way first, then the words. The last column stays free.
  const std::string count = fmt::format(" {}/{}  {}", done_, total_, left);
  const int room = terminal_width() - 1 - static_cast<int>(display_width(title_ + " " + count + gap + status_));
  const std::string bar = bar_of(fraction, std::clamp(room, kNarrowestBar, kWidestBar));
  fmt::print(stderr, "\r\x1b[2K{}",
             cut_to_width(fmt::format("{} {}{}{}{}", title_, bar, count, gap, status_), terminal_width() - 1));
  std::fflush(stderr);
  visible_ = true;
}

void Progress::erase() {
  if (!visible_) return;
  fmt::print(stderr, "\r\x1b[2K");
  std::fflush(stderr);
  visible_ = false;
}

ProgressPause::ProgressPause() : lock_(screen) {
  if (Progress* bar = Progress::shown(); bar != nullptr) bar->erase();
}

ProgressPause::~ProgressPause() = default;

std::string format_duration(double seconds) {
  const int64_t whole = std::llround(seconds);
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  return fmt::format("{} h {:02} min", whole / 3600, whole % 3600 / 60);
}

}  // namespace sotto
