// sotto bench simulate: the round loop against bare loops that only train.
#pragma once

namespace CLI {
class App;
}

namespace sotto::cli {

void add_bench_simulate(CLI::App& bench);

}  // namespace sotto::cli
