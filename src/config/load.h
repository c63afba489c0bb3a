// From a TOML file to a RunSpec.
#pragma once

#include "config/run_spec.h"
#include "config/section.h"

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace sotto::config {

// What config must know of methods to read [method]: their names, and each one's own keys. Filled by methods/catalogue.
struct MethodReader {
  std::vector<std::string> names;
  // Reads the method's own keys from [method], where `name` and `variant` have been read already.
  std::function<void(const std::string& name, Section& section)> read_options;
};

// Reads `file`, applies `overrides` ("a.b=value"), validates every key. Any problem is a UserError with file, line and
// key.
RunSpec load_run_spec(const std::filesystem::path& file, const std::vector<std::string>& overrides,
                      const MethodReader& methods);

// The same from TOML text; `name` stands for the file in messages.
RunSpec parse_run_spec(const std::string& text, const std::string& name, const std::vector<std::string>& overrides,
                       const MethodReader& methods);

}  // namespace sotto::config
