// What a run was made with: environment.json.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace sotto::artifacts {

// The program's version, compiler, libtorch, operating system, processor and number of cores. Nothing that differs
// between two runs on one machine.
nlohmann::json environment();

}  // namespace sotto::artifacts
