// sotto bench vpdr: what VPP adds to making prototypes and DCR to fine-tuning.
#pragma once

namespace CLI {
class App;
}

namespace sotto::cli {

void add_bench_vpdr(CLI::App& bench);

}  // namespace sotto::cli
