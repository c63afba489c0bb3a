// sotto bench noise: secure noise against libtorch's normal numbers.
#pragma once

namespace CLI {
class App;
}

namespace sotto::cli {

void add_bench_noise(CLI::App& bench);

}  // namespace sotto::cli
