// sotto run: one federation, from a config to a run directory.
#include "artifacts/run_directory.h"
#include "base/error.h"
#include "base/files.h"
#include "base/interrupt.h"
#include "base/log.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/config_options.h"
#include "cli/console.h"
#include "cli/output.h"
#include "federation/home_terms.h"
#include "methods/catalogue.h"
#include "run/execute.h"

#include <nlohmann/json.hpp>

#include <optional>

namespace sotto::cli {
namespace {

struct RunOptions {
  run::ConfigSource config;
  OutputOptions output;
  std::string out;
  std::string home;
  bool resume = false;
  int threads = 0;
};

int64_t rounds_done(const fs::path& folder, const config::RunSpec& spec, bool resume) {
  if (!resume || artifacts::is_free(folder)) return 0;
  const auto checkpoint = artifacts::RunReader(folder).last_checkpoint(spec.hash());
  return checkpoint ? checkpoint->round : 0;
}

void run(const RunOptions& options) {
  catch_interrupts();
  const config::RunSpec spec = run::load_spec(options.config);
  const fs::path folder = options.out.empty() ? run::default_run_folder(options.config, spec) : fs::path(options.out);
  if (!options.resume) artifacts::require_new(folder);
  const federation::Setup setup(spec);
  const int threads = resolve_threads(options.threads);
  const int64_t done = rounds_done(folder, spec, options.resume);
  info("{} on {}: {} clients, {} rounds, model {}, {} thread{}", spec.method, spec.data.name, spec.data.clients,
       spec.rounds, methods::trained_model_name(spec), threads, threads == 1 ? "" : "s");
  if (done > 0) info("resuming {} after round {}", folder.string(), done);

  std::optional<privacy::Home> home;
  if (!options.home.empty()) home.emplace(options.home, federation::home_records(setup));
  std::optional<nlohmann::json> summary;
  {
    ConsoleWatcher watcher(setup, done);
    run::Run rounds(setup, {.folder = folder,
                            .resume = options.resume,
                            .threads = threads,
                            .client_done = [&](int64_t round) { watcher.client_done(round); },
                            .home = home ? &*home : nullptr});
    watcher.follow(rounds.ledger());
    while (const auto record = rounds.next_round()) watcher.round(*record);
    if (rounds.finished()) summary = rounds.finish();
  }
  if (!summary) {
    throw Interrupted(fmt::format("stopped; continue with: sotto run {} --resume{}", folder.string(),
                                  options.home.empty() ? "" : " --home " + options.home));
  }
  if (options.output.json) {
    print_json(*summary);
    return;
  }
  print_text(describe_summary(*summary) + fmt::format("run directory {}\n", folder.string()));
}

}  // namespace

void add_run(Command& program) {
  auto options = std::make_shared<RunOptions>();
  Command command = program.subcommand("run", "Run a federation into a run directory");
  add_config_options(command, options->config);
  command.option("--out", options->out, "The run directory (default: runs/CONFIG-HASH)");
  command.option("--home", options->home,
                 "Charge every release to this home as well; its budget.toml holds over all runs");
  command.flag("--resume", options->resume, "Continue an interrupted run to the same final result");
  add_threads_option(command, options->threads);
  add_output_options(command, options->output, "Print summary.json on standard output");
  add_example(command, "sotto run examples/1_first_federation.toml --set federation.lr=0.1 --out runs/first");
  command.callback([options] { run(*options); });
}

}  // namespace sotto::cli
