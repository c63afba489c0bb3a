// What a run directory may hold besides the run itself.
#pragma once

#include "config/run_spec.h"

#include <nlohmann/json_fwd.hpp>

#include <filesystem>

namespace sotto::report {

// environment, partition, picture, curve, audit, attacks, embedding: null where there is nothing. A file that is not
// what docs/run-directory.md says is a UserError. Pictures become data URIs; they are taken only from the folder of the
// file that names them.
nlohmann::json run_extras(const std::filesystem::path& folder, const config::RunSpec& spec);

}  // namespace sotto::report
