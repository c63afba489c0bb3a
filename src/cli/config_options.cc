#include "cli/config_options.h"

#include "base/parallel.h"
#include "cli/command.h"

namespace sotto::cli {

Option add_config_options(Command& command, run::ConfigSource& source) {
  const Option config = command.option("CONFIG", source.config, "A TOML file, or a run directory").required();
  command.option("--set", source.overrides, "Override one setting, e.g. --set federation.lr=0.1 (repeatable)")
      .repeatable();
  return config;
}

void add_threads_option(Command& command, int& threads) {
  command.option("--threads", threads, "Clients trained at once (default: all cores)").range(0, 1024);
}

int resolve_threads(int threads) {
  return threads > 0 ? threads : available_threads();
}

}  // namespace sotto::cli
