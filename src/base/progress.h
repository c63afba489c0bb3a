// A progress bar with time left; plain lines every few seconds when standard error is not a terminal; nothing under
// --quiet.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>

namespace sotto {

// Bars may be made on any thread. One is on the screen: the newest of the thread that made the oldest living one, so
// that work inside work shows itself, and jobs side by side leave the screen to the bar that counts them.
class Progress {
 public:
  // Announces `total` units of work. Nothing is drawn for work that ends within half a second.
  Progress(std::string title, int64_t total);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Safe to call from several threads. `status` is shown behind the bar, e.g. "accuracy 0.83".
  void advance(int64_t units = 1, std::string status = {});

 private:
  friend class ProgressPause;
  static Progress* shown();
  void draw();
  void erase();

  using Clock = std::chrono::steady_clock;
  const std::string title_;
  const int64_t total_;
  int64_t done_ = 0;
  std::string status_;
  const Clock::time_point start_ = Clock::now();
  Clock::time_point last_drawn_ = start_;
  bool visible_ = false;
  const std::thread::id owner_ = std::this_thread::get_id();
};

// While it lives, no bar is on the screen: for lines printed between two updates of a bar.
class ProgressPause {
 public:
  ProgressPause();
  ~ProgressPause();
  ProgressPause(const ProgressPause&) = delete;
  ProgressPause& operator=(const ProgressPause&) = delete;

 private:
  std::unique_lock<std::recursive_mutex> lock_;
};

// "8 s", "2 min 05 s", "3 h 20 min".
std::string format_duration(double seconds);

}  // namespace sotto
