// sotto bench simulate: the round loop against bare loops that only train.
#pragma once

namespace sotto::cli {

class Command;

void add_bench_simulate(Command& bench);

}  // namespace sotto::cli
