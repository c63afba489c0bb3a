// sotto bench dpsgd: a private step against a plain one.
#pragma once

namespace CLI {
class App;
}

namespace sotto::cli {

void add_bench_dpsgd(CLI::App& bench);

}  // namespace sotto::cli
