// sotto bench method: what a round of one method costs, in rounds of another. Times are processor time, since only one
// of the two computes at a time and a busy machine would drown small differences of the clock.
#pragma once

namespace sotto::cli {

class Command;

void add_bench_method(Command& bench);

}  // namespace sotto::cli
