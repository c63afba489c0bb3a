#include "cli/config_options.h"

#include "base/launch.h"
#include "base/parallel.h"
#include "cli/command.h"

#include <algorithm>
#include <thread>

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
  if (threads > 0) return threads;
  // Ranks on one machine share its cores, if they were not given some each.
  const int share = static_cast<int>(std::thread::hardware_concurrency()) / std::max(1, launch().local_size);
  return std::max(1, std::min(available_threads(), launch().local_size > 1 ? share : available_threads()));
}

}  // namespace sotto::cli
