// Messages for machines: one JSON object a line on standard error.
//
//   {"time": "2026-03-01T10:00:00.123Z", "level": "info", "event": "round", "round": 3, "uploads": 4}
//
// Lines like these are collected, shipped and kept by others. So what stands in them is said field by field, by whoever
// knows that it is nobody's secret.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <string>

namespace sotto {

// What becomes of messages that were written for people (base/log.h).
enum class PlainMessages {
  kKept,    // as {"event": "message"}: where nobody's records are
  kDropped  // they may speak of records
};

// From here on.
void log_json(PlainMessages plain);
bool logs_json();

// One line, if log_json was called; nothing otherwise. `level` is info, warning or error.
void log_event(const std::string& event, const nlohmann::json& fields, const std::string& level = "info");

// Why the program ends, as {"event": "failed"}. Where messages are dropped the reason is too: an error may quote a record
// that cannot be read. True if the message is taken care of.
bool log_failure_as_json(const std::string& message);

// For base/log.cc: true if the message is taken care of.
bool log_plain_as_json(const std::string& message, const std::string& level);

}  // namespace sotto
