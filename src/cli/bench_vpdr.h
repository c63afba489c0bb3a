// sotto bench vpdr: what VPP adds to making prototypes and DCR to fine-tuning.
#pragma once

namespace sotto::cli {

class Command;

void add_bench_vpdr(Command& bench);

}  // namespace sotto::cli
