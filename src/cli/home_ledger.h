// What `sotto ledger` says of a home: what its clients have spent over all runs.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <filesystem>
#include <string>

namespace sotto::cli {

// Budget, spent and left per client, over all runs and run by run.
nlohmann::json show_home(const std::filesystem::path& folder);
std::string describe_home(const nlohmann::json& shown, bool all);

// A UserError if the chain of rows is broken, if its mark speaks of another ledger, or if a client has spent more than
// its home allows.
nlohmann::json verify_home(const std::filesystem::path& folder);

}  // namespace sotto::cli
