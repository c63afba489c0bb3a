// Rounds in the format of TensorBoard's event files.
//
//   file   := record*
//   record := length (8 bytes) masked_crc32c(length) (4) payload masked_crc32c(payload) (4)     all little-endian
//
// A payload is an `Event` of events.proto; the first one names the format's version.
#pragma once

#include "privacy/guarantee.h"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace sotto::artifacts {

// CRC-32C (Castagnoli).
uint32_t crc32c(std::string_view bytes);

// The record that an event file starts with.
std::string first_event_record(double wall_time);

struct RoundEvent {
  const nlohmann::json& line;  // of metrics.jsonl
  double wall_time = 0;        // when the round ended, in seconds since 1970
  privacy::Guarantee spent = {};
  bool per_client = false;  // also a scalar per client and score
};

// One record with everything known of a round: scalars, and a histogram of clients' accuracies. Values that are not
// defined are left out, an ε of ∞ among them.
std::string round_event_record(const RoundEvent& round);

}  // namespace sotto::artifacts
