// From a TOML file to a RunSpec.
#pragma once

#include "config/run_spec.h"
#include "settings/section.h"

#include <nlohmann/json_fwd.hpp>

#include <filesystem>
#include <string>
#include <vector>

namespace sotto::config {

// Tables of a config that speak of many runs: whoever makes those reads them (experiments/).
inline constexpr const char* kFitTable = "fit";
inline constexpr const char* kSweepTable = "sweep";
// And those that speak of a federation between machines (federation/federation_plan.h).
inline constexpr const char* kDeclaredTable = "declared";
inline constexpr const char* kServeTable = "serve";

// Reads `file`, applies `overrides` ("a.b=value"), validates every key. Any problem is a UserError with file, line and
// key.
RunSpec load_run_spec(const std::filesystem::path& file, const std::vector<std::string>& overrides);

// The same from TOML text; `name` stands for the file in messages.
RunSpec parse_run_spec(const std::string& text, const std::string& name, const std::vector<std::string>& overrides);

// One of the tables above; nothing if the file has none.
std::optional<settings::Section> load_table(const std::filesystem::path& file,
                                            const std::vector<std::string>& overrides, const std::string& table);

// The same run with another method, whose options are read as if they were written.
RunSpec with_method(const RunSpec& spec, const std::string& method, methods::Variant variant,
                    const nlohmann::json& options);

}  // namespace sotto::config
