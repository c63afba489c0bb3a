// CONFIG, --set and --threads, as many commands take them.
#pragma once

#include "run/config_source.h"

namespace CLI {
class App;
}

namespace sotto::cli {

void add_config_options(CLI::App& command, run::ConfigSource& source);

// --threads: 0 stands for all cores.
void add_threads_option(CLI::App& command, int& threads);
int resolve_threads(int threads);

}  // namespace sotto::cli
