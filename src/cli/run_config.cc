#include "cli/run_config.h"

#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "base/parallel.h"
#include "config/load.h"
#include "data/search.h"
#include "methods/catalogue.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <mutex>

namespace sotto::cli {
namespace {

// Settles which of two datasets it is, so that the run's hash says what it used.
void take_installed_dataset(config::DataOptions& data) {
  const auto installed = [](const std::string& name) { return data::find_dataset(name).has_value(); };
  const auto other = std::find_if(data.otherwise.begin(), data.otherwise.end(), installed);
  if (!installed(data.name) && other != data.otherwise.end()) {
    static std::once_flag once;
    std::call_once(once, [&] { warn("{} is not installed; {} takes its place", data.name, *other); });
    data.name = *other;
  }
  data.otherwise.clear();
}

}  // namespace

void add_run_config_options(CLI::App& command, RunConfigOptions& options) {
  command.add_option("CONFIG", options.config, "A TOML file, or a run directory")->required();
  command.add_option("--set", options.overrides, "Override one setting, e.g. --set federation.lr=0.1 (repeatable)")
      ->take_all()
      ->allow_extra_args(false);
}

config::RunSpec load_spec(const RunConfigOptions& options) {
  return load_spec(options, {});
}

config::RunSpec load_spec(const RunConfigOptions& options, const std::vector<std::string>& more_overrides) {
  std::vector<std::string> overrides = options.overrides;
  overrides.insert(overrides.end(), more_overrides.begin(), more_overrides.end());
  const fs::path path = options.config;
  if (!fs::exists(path)) fail_user("there is no config {}", options.config);
  config::RunSpec spec =
      config::load_run_spec(fs::is_directory(path) ? path / "config.toml" : path, overrides, methods::method_reader());
  take_installed_dataset(spec.data);
  return spec;
}

fs::path default_run_folder(const RunConfigOptions& options, const config::RunSpec& spec) {
  const fs::path path = fs::path(options.config).lexically_normal();
  if (fs::is_directory(path)) return path;
  return fs::path("runs") / fmt::format("{}-{}", path.stem().string(), spec.hash().substr(0, 8));
}

fs::path default_group_folder(const RunConfigOptions& options, const std::string& what) {
  const fs::path path = fs::path(options.config).lexically_normal();
  const fs::path named = path.has_filename() ? path : path.parent_path();
  return fs::path("runs") / fmt::format("{}-{}", named.stem().string(), what);
}

void add_threads_option(CLI::App& command, int& threads) {
  command.add_option("--threads", threads, "Clients trained at once (default: all cores)")->check(CLI::Range(0, 1024));
}

int resolve_threads(int threads) {
  return threads > 0 ? threads : available_threads();
}

}  // namespace sotto::cli
