// sotto fit: which clipping bound suits which budget, learnt on public data.
#include "experiments/fit.h"

#include "base/files.h"
#include "base/interrupt.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/config_options.h"
#include "cli/output.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace sotto::cli {
namespace {

struct FitCommand {
  run::ConfigSource config;
  experiments::FitScope scope;
  std::string out;
  int jobs = 0;
  OutputOptions output;
};

void fit(const FitCommand& command) {
  catch_interrupts();
  const experiments::FitResult result = experiments::run_fit(
      {.config = command.config,
       .scope = command.scope,
       .folder = command.out.empty() ? run::default_group_folder(command.config, "fit") : fs::path(command.out),
       .threads = resolve_threads(command.jobs)});
  if (command.output.json) {
    print_json(nlohmann::json(result.content));
    return;
  }
  const std::string file = result.file.string();
  print_text(experiments::describe_fit(result.grid, result.matrix, result.fitted) +
             fmt::format("\ncurve {} (picture beside it); use it with method.curve = \"{}\"\n", file, file));
}

}  // namespace

void add_fit(Command& program) {
  auto options = std::make_shared<FitCommand>();
  Command command = program.subcommand("fit", "Learn on public data which clipping bound suits which budget");
  add_config_options(command, options->config);
  command.option("--out", options->out, "Folder for the curve and the runs (default: runs/CONFIG-fit)");
  command.option("--jobs", options->jobs, "Runs at once, one thread each (default: all cores)").range(0, 1024);
  command.flag("--quick", options->scope.quick, "A first look: at most 3 budgets, 3 bounds and 3 rounds, once");
  command.flag("--same-data", options->scope.same_data,
               "Allow the clients' own dataset as proxy; only right if it is public");
  add_output_options(command, options->output, "Print curve.json on standard output");
  add_example(command, "sotto fit examples/paper/pac-dp/heart-curve.toml --out runs/heart-curve");
  command.callback([options] { fit(*options); });
}

}  // namespace sotto::cli
