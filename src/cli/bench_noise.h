// sotto bench noise: secure noise against libtorch's normal numbers.
#pragma once

namespace sotto::cli {

class Command;

void add_bench_noise(Command& bench);

}  // namespace sotto::cli
