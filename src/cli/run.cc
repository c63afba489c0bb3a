// sotto run: one federation, from a config to a run directory.
#include "artifacts/run_directory.h"
#include "artifacts/run_lock.h"
#include "artifacts/summary.h"
#include "base/error.h"
#include "base/files.h"
#include "base/interrupt.h"
#include "base/launch.h"
#include "base/log.h"
#include "base/shell_word.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/config_options.h"
#include "cli/console.h"
#include "cli/output.h"
#include "federation/home_terms.h"
#include "methods/catalogue.h"
#include "run/execute.h"
#include "transport/ranks.h"
#include "transport/start_together.h"

#include <fmt/format.h>
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

// What all ranks must have before one of them begins.
federation::Setup prepare(const RunOptions& options, bool over_ranks, fs::path& folder) {
  if (over_ranks && !options.home.empty()) {
    fail_user("--home {}: a home is charged by runs of one process; leave out mpirun, or --home", options.home);
  }
  const config::RunSpec spec = run::load_spec(options.config);
  folder = options.out.empty() ? run::default_run_folder(options.config, spec) : fs::path(options.out);
  if (!options.resume && launch().rank == 0) artifacts::require_new(folder);
  return federation::Setup(spec);
}

std::string how_to_continue(const RunOptions& options, const fs::path& folder) {
  return fmt::format("continue with: sotto run {} --resume{}", shell_word(folder.string()),
                     options.home.empty() ? "" : " --home " + shell_word(options.home));
}

void run(const RunOptions& options) {
  catch_interrupts();
  const auto ranks = transport::open_ranks();
  fs::path folder;
  const auto setup_here = ranks ? transport::start_together(*ranks, [&] { return prepare(options, true, folder); })
                                : std::optional(prepare(options, false, folder));
  if (!setup_here) return;
  const federation::Setup& setup = *setup_here;
  const int threads = resolve_threads(options.threads);
  const std::string ended = "this job is being ended; " + how_to_continue(options, folder);
  if (ranks && ranks->rank() > 0) {
    announce_end_without(artifacts::lock_file(folder).string(), ended);
    run::help(setup, folder, *ranks, threads);
    ranks->finish();
    return;
  }
  const config::RunSpec& spec = setup.spec();
  info("{} on {}: {} clients, {} rounds, model {}, {}{} thread{}", spec.method, spec.data.name, spec.data.clients,
       spec.rounds, methods::trained_model_name(spec), ranks ? fmt::format("{} ranks, each with ", ranks->size()) : "",
       threads, threads == 1 ? "" : "s");
  if (ranks) announce_interrupts("stopping after this round; " + how_to_continue(options, folder), ended);

  if (!options.home.empty() && !setup.spec().privacy) {
    fail_user("--home {}: nothing can be proven of a run without [privacy]; state it, or leave out --home",
              options.home);
  }
  std::optional<privacy::Home> home;
  if (!options.home.empty()) home.emplace(options.home, federation::home_records(setup));
  std::optional<artifacts::RunSummary> summary;
  {
    std::optional<ConsoleWatcher> watcher;
    run::Run rounds(setup, {.folder = folder,
                            .resume = options.resume,
                            .threads = threads,
                            .client_done = [&](int64_t round) { watcher->client_done(round); },
                            .home = home ? &*home : nullptr,
                            .ranks = ranks.get()});
    const int64_t done = rounds.broadcast().round;
    if (done > 0) info("resuming {} after round {}", folder.string(), done);
    watcher.emplace(setup, done);
    watcher->follow(rounds.ledger());
    while (const auto record = rounds.next_round()) watcher->round(*record);
    if (rounds.finished()) summary = rounds.finish();
  }
  if (ranks) ranks->finish();
  if (!summary) throw Interrupted("stopped; " + how_to_continue(options, folder));
  if (options.output.json) {
    print_json(artifacts::summary_document(*summary));
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
  command.flag("--resume", options->resume, "Continue an interrupted run, or extend a finished one (--set rounds=…)");
  add_threads_option(command, options->threads);
  add_output_options(command, options->output, "Print summary.json on standard output");
  add_example(command,
              "sotto run examples/1_first_federation.toml --set federation.lr=0.1 --out runs/first\n"
              "  sotto run runs/first --resume --set rounds=20");
  command.callback([options] { run(*options); });
}

}  // namespace sotto::cli
