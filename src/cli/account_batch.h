// --batch: one JSON question a line on standard input, one JSON answer a line on standard output.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <functional>

namespace sotto::cli {

// Answers in the order of the questions, several at a time. A UserError of `answer`, or a line that is not JSON,
// becomes `refusal` with the reason added; the rest goes on.
void run_batch(const nlohmann::json& refusal, const std::function<nlohmann::json(const nlohmann::json&)>& answer);

}  // namespace sotto::cli
