// Rounds as lines of metrics.jsonl.
#pragma once

#include "federation/federation.h"

#include <nlohmann/json.hpp>

namespace sotto::artifacts {

// One line of metrics.jsonl. Values that are not defined are null.
nlohmann::json to_json(const federation::RoundRecord& record);

// Scores of one evaluation: mean, std and worst over clients, per client, per domain, the global model.
nlohmann::json to_json(const federation::Evaluation& evaluation);
// The scores that an object made by it holds; what is not there is not defined. No accuracy at all is a UserError.
federation::Evaluation evaluation(const nlohmann::json& value);

}  // namespace sotto::artifacts
