// Rounds as lines of metrics.jsonl.
#pragma once

#include "federation/federation.h"

#include <nlohmann/json.hpp>

namespace sotto::artifacts {

// One line of metrics.jsonl. Values that are not defined are null.
nlohmann::json to_json(const federation::RoundRecord& record);

// Scores of one evaluation: mean, std and worst over clients, per client, per domain, the global model.
nlohmann::json to_json(const federation::Evaluation& evaluation);

}  // namespace sotto::artifacts
