// One function per subcommand: it adds itself, its options and its callback to the program.
#pragma once

namespace CLI {
class App;
}

namespace sotto::cli {

void add_data(CLI::App& program);

}  // namespace sotto::cli
