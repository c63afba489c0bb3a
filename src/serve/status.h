// How a federation stands, from the files of its server: also beside the server, and after it has ended.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <filesystem>

namespace sotto::serve {

bool is_server_folder(const std::filesystem::path& folder);

// {"kind": "server", "plan", "method", "running", "finished", "rounds", "rounds_done", "open_round": {"round", "asked",
// "reported"} or null, "places", "upload_bytes", "epsilon": {"promised", "delta", "spent"} or null, "evaluation":
// as in evaluation.h or null, "members": [{"client", "name", "uploads", "last_round", "connected", "heard", "revoked",
// "budget", "spent"}]}, the last two null without privacy. `heard` is when a client of a running server was heard of last,
// in seconds since 1970, or null; connected is who was heard of within two minutes. `spent` is the largest of any
// client's, by what uploads state and the plan allows; what a client has spent in all federations, only its home knows.
nlohmann::json server_status(const std::filesystem::path& folder);

}  // namespace sotto::serve
