#include "base/json_log.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <atomic>
#include <chrono>
#include <cstdio>

namespace sotto {
namespace {

enum class JsonMode { kOff, kKept, kDropped };

std::atomic<JsonMode> json_mode{JsonMode::kOff};

std::string time_now() {
  const auto now = std::chrono::time_point_cast<std::chrono::milliseconds>(std::chrono::system_clock::now());
  const auto milliseconds = now.time_since_epoch().count() % 1000;
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z", fmt::gmtime(std::chrono::system_clock::to_time_t(now)),
                     milliseconds);
}

}  // namespace

void log_json(PlainMessages plain) {
  json_mode = plain == PlainMessages::kKept ? JsonMode::kKept : JsonMode::kDropped;
}

bool logs_json() {
  return json_mode != JsonMode::kOff;
}

void log_event(const std::string& event, const nlohmann::json& fields, const std::string& level) {
  if (!logs_json()) return;
  nlohmann::ordered_json line{{"time", time_now()}, {"level", level}, {"event", event}};
  for (const auto& [key, value] : fields.items()) line[key] = value;
  const std::string text = line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
  std::fwrite(text.data(), 1, text.size(), stderr);
}

bool log_failure_as_json(const std::string& message) {
  log_event("failed", {{"reason", json_mode == JsonMode::kKept ? message : "not logged; `sotto check` finds it"}},
            "error");
  return logs_json();
}

bool log_plain_as_json(const std::string& message, const std::string& level) {
  if (json_mode == JsonMode::kKept) log_event("message", {{"message", message}}, level);
  return logs_json();
}

}  // namespace sotto
