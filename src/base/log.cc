#include "base/log.h"

#include "base/json_log.h"
#include "base/launch.h"
#include "base/progress.h"
#include "base/terminal.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>

namespace sotto {
namespace {

std::atomic<LogLevel> level{LogLevel::kNormal};

spdlog::logger& logger() {
  static const std::shared_ptr<spdlog::logger> instance = [] {
    auto created = spdlog::stderr_color_mt("sotto", spdlog::color_mode::never);
    created->set_pattern("%v");
    return created;
  }();
  return *instance;
}

// People read what rank 0 says; of the others they want to know only why they failed.
bool is_silent() {
  static const bool silent = launch().rank > 0;
  return silent;
}

}  // namespace

void set_log_level(LogLevel chosen) {
  level = chosen;
}

LogLevel log_level() {
  return is_silent() ? LogLevel::kQuiet : level.load();
}

bool is_interactive() {
  static const bool interactive = [] {
    const char* term = std::getenv("TERM");
    return ::isatty(STDERR_FILENO) == 1 && term != nullptr && std::strcmp(term, "dumb") != 0;
  }();
  return interactive;
}

void log_line(const std::string& message) {
  if (is_silent()) return;
  if (log_plain_as_json(message, "info")) return;
  const ProgressPause pause;
  logger().info(message);
}

void log_warning(const std::string& message) {
  if (is_silent()) return;
  if (log_plain_as_json(message, "warning")) return;
  const ProgressPause pause;
  logger().warn(styled("warning:", Style::kWarning) + " " + message);
}

}  // namespace sotto
