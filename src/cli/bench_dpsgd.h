// sotto bench dpsgd: a private step against a plain one.
#pragma once

namespace sotto::cli {

class Command;

void add_bench_dpsgd(Command& bench);

}  // namespace sotto::cli
