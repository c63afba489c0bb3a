// CONFIG and --set: how a command, or a program, names a run's settings.
#pragma once

#include "config/load.h"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace sotto::run {

struct ConfigSource {
  std::string config;                  // a TOML file, or a run directory
  std::vector<std::string> overrides;  // a.b=value
};

config::RunSpec load_spec(const ConfigSource& source);
config::RunSpec load_spec(const ConfigSource& source, const std::vector<std::string>& more_overrides);

// A table of the file that speaks of many runs (config/load.h); nothing if it has none.
std::optional<settings::Section> load_table(const ConfigSource& source, const std::string& table);

// runs/STEM-HASH8: a folder of its own for every distinct setting, so that runs never overwrite each other.
std::filesystem::path default_run_folder(const ConfigSource& source, const config::RunSpec& spec);

// runs/STEM-WHAT: where a command keeps the many runs it makes of one config.
std::filesystem::path default_group_folder(const ConfigSource& source, const std::string& what);

}  // namespace sotto::run
