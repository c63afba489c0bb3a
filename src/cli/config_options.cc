#include "cli/config_options.h"

#include "base/parallel.h"

#include <CLI/CLI.hpp>

namespace sotto::cli {

void add_config_options(CLI::App& command, run::ConfigSource& source) {
  command.add_option("CONFIG", source.config, "A TOML file, or a run directory")->required();
  command.add_option("--set", source.overrides, "Override one setting, e.g. --set federation.lr=0.1 (repeatable)")
      ->take_all()
      ->allow_extra_args(false);
}

void add_threads_option(CLI::App& command, int& threads) {
  command.add_option("--threads", threads, "Clients trained at once (default: all cores)")->check(CLI::Range(0, 1024));
}

int resolve_threads(int threads) {
  return threads > 0 ? threads : available_threads();
}

}  // namespace sotto::cli
