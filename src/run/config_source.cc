#include "run/config_source.h"

#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "base/text.h"
#include "data/search.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>

namespace sotto::run {
namespace {

// Settles which of two datasets it is, so that the run's hash says what it used.
void take_installed_dataset(data::DataOptions& data) {
  const auto installed = [](const std::string& name) { return data::find_dataset(name).has_value(); };
  const auto other = std::find_if(data.otherwise.begin(), data.otherwise.end(), installed);
  if (!installed(data.name) && other != data.otherwise.end()) {
    static std::once_flag once;
    std::call_once(once, [&] { warn("{} is not installed; {} takes its place", data.name, *other); });
    data.name = *other;
  }
  data.otherwise.clear();
}

fs::path file_of(const ConfigSource& source) {
  const fs::path path = source.config;
  if (!fs::exists(path)) fail_user("there is no config {}", source.config);
  if (!fs::is_directory(path)) return path;
  if (!fs::exists(path / "config.toml")) {
    fail_user("{} is neither a config nor a run directory: it is a folder without config.toml", source.config);
  }
  return path / "config.toml";
}

}  // namespace

std::optional<settings::Section> load_table(const ConfigSource& source, const std::string& table) {
  return config::load_table(file_of(source), source.overrides, table);
}

config::RunSpec load_spec(const ConfigSource& source) {
  return load_spec(source, {});
}

config::RunSpec load_spec(const ConfigSource& source, const std::vector<std::string>& more_overrides) {
  std::vector<std::string> overrides = source.overrides;
  overrides.insert(overrides.end(), more_overrides.begin(), more_overrides.end());
  const fs::path file = file_of(source);
  if (overrides.empty() && trim(read_file(file)).empty()) {
    fail_user("{} is empty; examples/1_first_federation.toml shows what a config says", file.string());
  }
  config::RunSpec spec = config::load_run_spec(file, overrides);
  take_installed_dataset(spec.data);
  return spec;
}

fs::path default_run_folder(const ConfigSource& source, const config::RunSpec& spec) {
  const fs::path path = fs::path(source.config).lexically_normal();
  if (fs::is_directory(path)) return path;
  return fs::path("runs") / fmt::format("{}-{}", path.stem().string(), spec.hash().substr(0, 8));
}

fs::path default_group_folder(const ConfigSource& source, const std::string& what) {
  const fs::path path = fs::path(source.config).lexically_normal();
  const fs::path named = path.has_filename() ? path : path.parent_path();
  return fs::path("runs") / fmt::format("{}-{}", named.stem().string(), what);
}

}  // namespace sotto::run
