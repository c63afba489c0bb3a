// sotto bench: what a step costs, as ratios within one run.
#include "cli/bench_account.h"
#include "cli/bench_dpsgd.h"
#include "cli/bench_method.h"
#include "cli/bench_noise.h"
#include "cli/bench_prompt.h"
#include "cli/bench_simulate.h"
#include "cli/bench_vpdr.h"
#include "cli/command.h"
#include "cli/commands.h"

namespace sotto::cli {

void add_bench(Command& program) {
  Command command = program.subcommand("bench", "Measure speed against something else in the same run");
  command.require_subcommand();
  add_bench_simulate(command);
  add_bench_dpsgd(command);
  add_bench_noise(command);
  add_bench_account(command);
  add_bench_method(command);
  add_bench_vpdr(command);
  add_bench_prompt(command);
}

}  // namespace sotto::cli
