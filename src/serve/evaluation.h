// What clients have said of the last model: SERVER/evaluation.json.
#pragma once

#include "federation/federation_plan.h"

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace sotto::serve {

// One client's release.
struct ReleasedCount {
  int64_t client = 0;
  int64_t right = 0;  // with noise: it may be negative, or more than there are records
  double noise_stddev = 0;
};

// {"records", "asked", "accuracy", "noise_stddev", "clients": [{"client", "right", "accuracy", "noise_stddev"}]}: the mean
// over those who answered, and the standard deviation of the noise in it; null if nobody did.
nlohmann::json evaluation_json(const std::vector<ReleasedCount>& counts, int64_t records, int64_t asked);
void write_evaluation(const std::filesystem::path& folder, const nlohmann::json& evaluation);
// Nothing if there is none.
std::optional<nlohmann::json> read_evaluation(const std::filesystem::path& folder);
// The result in one line.
std::string describe_evaluation(const nlohmann::json& evaluation);

}  // namespace sotto::serve
