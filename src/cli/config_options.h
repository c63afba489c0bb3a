// CONFIG, --set and --threads, as many commands take them.
#pragma once

#include "run/config_source.h"

namespace sotto::cli {

class Command;
class Option;

// Returns CONFIG, which is required unless the caller says otherwise.
Option add_config_options(Command& command, run::ConfigSource& source);

// --threads: 0 stands for all cores.
void add_threads_option(Command& command, int& threads);
int resolve_threads(int threads);

}  // namespace sotto::cli
