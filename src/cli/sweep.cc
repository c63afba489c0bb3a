// sotto sweep: a grid of settings times seeds, as one table.
#include "experiments/sweep.h"

#include "base/error.h"
#include "base/files.h"
#include "base/interrupt.h"
#include "base/table.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/config_options.h"
#include "cli/output.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace sotto::cli {
namespace {

using nlohmann::json;

constexpr int64_t kQuickSeeds = 2;

// What the command line says; what it leaves out comes from the config's [sweep].
struct SweepCommand {
  run::ConfigSource config;
  experiments::SweepOptions table;
  bool quick = false;
  std::string out;
  int jobs = 0;
  OutputOptions output;
};

// The table that is asked for. `given` tells which options were on the command line.
experiments::SweepOptions resolve(const SweepCommand& command, const Command& given) {
  run::load_spec(command.config);  // what is wrong with it is said before anything of its table
  const auto described = run::load_table(command.config, config::kSweepTable);
  experiments::SweepOptions table =
      described ? experiments::read_sweep_options(*described) : experiments::SweepOptions{};
  if (command.quick) {
    table.seeds = std::min(table.seeds, kQuickSeeds);
    if (!table.quick_grid.empty()) table.grid = table.quick_grid;
  } else {
    table.quick.clear();
  }
  if (given.has("--grid")) table.grid = command.table.grid;
  if (given.has("--seeds")) table.seeds = command.table.seeds;
  if (given.has("--against")) table.against = command.table.against;
  if (given.has("--metric")) table.metric = command.table.metric;
  return table;
}

std::string setting_text(const json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

std::string figure_text(const std::optional<double>& figure) {
  return figure ? fmt::format("{:.4f}", *figure) : "–";
}

std::string describe(const experiments::SweepTable& result) {
  const experiments::CellResult& first = result.cells.front();
  const bool named = !first.row.empty(), compared = !result.against.empty();
  std::vector<std::string> headers;
  for (const auto& [key, value] : first.settings.items()) headers.push_back(key);
  if (named) headers.emplace_back("row");
  privacy::Basis weakest = privacy::Basis::kProven;
  for (const experiments::CellResult& cell : result.cells) weakest = privacy::weaker(weakest, cell.basis);
  headers.insert(headers.end(), {"claimed ε", privacy::epsilon_name(weakest), "seeds", result.metric, "± std"});
  if (compared) headers.emplace_back("p");
  Table table(headers);
  std::string problems;
  for (const experiments::CellResult& cell : result.cells) {
    std::vector<std::string> texts;
    for (const auto& [key, value] : cell.settings.items()) texts.push_back(setting_text(value));
    if (named) texts.push_back(cell.row);
    texts.push_back(epsilon_cell(cell.claimed_epsilon, weakest, weakest));
    texts.push_back(epsilon_cell(cell.proven_epsilon, cell.basis, weakest));
    texts.push_back(std::to_string(cell.values.size()));
    texts.push_back(figure_text(cell.mean));
    texts.push_back(figure_text(cell.std));
    if (compared) texts.push_back(cell.against ? figure_text(cell.p_value) : "reference");
    table.add_row(texts);
    for (const std::string& failure : cell.failures) problems += "failed: " + failure + "\n";
  }
  return table.to_string() + problems;
}

void sweep(const SweepCommand& command, const Command& given) {
  catch_interrupts();
  const std::string what = command.quick ? "quick" : "sweep";
  const experiments::SweepTable table = experiments::run_sweep(
      {.config = command.config,
       .options = resolve(command, given),
       .quick = command.quick,
       .folder = command.out.empty() ? run::default_group_folder(command.config, what) : fs::path(command.out),
       .threads = resolve_threads(command.jobs)});
  if (command.output.json) {
    print_json(experiments::to_json(table));
  } else {
    print_text(describe(table));
  }
  if (!table.first_failure.empty()) fail_user("some runs failed, the first with: {}", table.first_failure);
}

}  // namespace

void add_sweep(Command& program) {
  auto options = std::make_shared<SweepCommand>();
  Command command = program.subcommand(
      "sweep", "Run a grid of settings times seeds, or the table that the config's [sweep] describes, and compare");
  add_config_options(command, options->config);
  command.option("--grid", options->table.grid, "KEY=V1,V2,… (repeatable: all combinations)").repeatable();
  command.option("--seeds", options->table.seeds, "Seeds for every setting, from the config's on").range(1, 10000);
  command.option("--against", options->table.against,
                 "The row, or KEY=VALUE[,…] of the setting, that the others are tested against");
  command.option("--metric", options->table.metric, "Which value of summary.json to compare, or rounds_to:ACCURACY");
  command.flag("--quick", options->quick, "A first look: what [sweep] calls quick, two seeds");
  command.option("--out", options->out, "Folder for the runs (default: runs/CONFIG-sweep)");
  command.option("--jobs", options->jobs, "Runs at once, one thread each (default: all cores)").range(0, 1024);
  add_output_options(command, options->output, "Print the table as JSON");
  add_example(command,
              "sotto sweep examples/1_first_federation.toml --grid method.name=fedavg,local-only --seeds 5 "
              "--against method.name=local-only");
  command.callback([options, command] { sweep(*options, command); });
}

}  // namespace sotto::cli
