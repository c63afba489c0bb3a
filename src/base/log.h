// Messages for people, on standard error; standard output belongs to results.
#pragma once

#include <fmt/format.h>

#include <string>

namespace sotto {

enum class LogLevel { kQuiet, kNormal, kVerbose };

// --quiet and --verbose; warnings are shown at every level.
void set_log_level(LogLevel level);
LogLevel log_level();

// True if standard error is a terminal that may be drawn on (bars, colours).
bool is_interactive();

void log_line(const std::string& message);
void log_warning(const std::string& message);

template <typename... Args>
void info(fmt::format_string<Args...> format, Args&&... args) {
  if (log_level() != LogLevel::kQuiet) log_line(fmt::format(format, std::forward<Args>(args)...));
}

template <typename... Args>
void warn(fmt::format_string<Args...> format, Args&&... args) {
  log_warning(fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace sotto
