// CONFIG and --set: how commands name a run's settings.
#pragma once

#include "config/run_spec.h"

#include <filesystem>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace sotto::cli {

struct RunConfigOptions {
  std::string config;                  // a TOML file, or a run directory
  std::vector<std::string> overrides;  // a.b=value
};

void add_run_config_options(CLI::App& command, RunConfigOptions& options);

config::RunSpec load_spec(const RunConfigOptions& options);
config::RunSpec load_spec(const RunConfigOptions& options, const std::vector<std::string>& more_overrides);

// runs/STEM-HASH8: a folder of its own for every distinct setting, so that runs never overwrite each other.
std::filesystem::path default_run_folder(const RunConfigOptions& options, const config::RunSpec& spec);

// runs/STEM-WHAT: where a command keeps the many runs it makes of one config.
std::filesystem::path default_group_folder(const RunConfigOptions& options, const std::string& what);

// Adds --threads; 0 = all cores.
void add_threads_option(CLI::App& command, int& threads);
int resolve_threads(int threads);

}  // namespace sotto::cli
