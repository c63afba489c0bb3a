// How a home stands: its federations, and what they cost. Also beside a process that takes part.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <filesystem>

namespace sotto::member {

// {"kind": "home", "name", "server", "budget": {"epsilon", "delta", "spent", "left", "per_day"}, "federations": [{"plan",
// "method", "rounds", "client", "participations", "most_participations", "last_round", "outbox": {"round", "bytes"} or
// null}]}. For the owner: what was spent is nobody else's affair.
nlohmann::json home_status(const std::filesystem::path& folder);

}  // namespace sotto::member
