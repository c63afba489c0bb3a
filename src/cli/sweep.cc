// sotto sweep: a grid of settings times seeds, as one table.
#include "experiments/sweep.h"

#include "artifacts/shared_work.h"
#include "base/error.h"
#include "base/files.h"
#include "base/interrupt.h"
#include "base/launch.h"
#include "base/log.h"
#include "base/table.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/config_options.h"
#include "cli/output.h"
#include "experiments/private_selection.h"

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
  std::string home;
  bool private_selection = false;
  double trials = 10;
  std::string trial_law = "logarithmic";
  double score_noise = 0.01;
  std::string out;
  int jobs = 0;
  std::string format = "text";
  OutputOptions output;
};

// The table that is asked for. `given` tells which options were on the command line.
experiments::SweepOptions resolve(const SweepCommand& command, const Command& given) {
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

// Accuracies are shown in percent, as everywhere.
bool is_share(const std::string& metric) {
  return metric.find("accuracy") != metric.npos && !metric.starts_with("rounds_to:");
}

std::string metric_text(const std::optional<double>& figure, const std::string& metric) {
  if (!figure || !is_share(metric)) return figure_text(figure);
  return fmt::format("{:.2f}", 100 * *figure);
}

// Each ε above is that of one run: what it costs to have looked at all of them stands below.
std::string describe(const experiments::SelectionCost& cost) {
  if (!cost.why_none.empty()) {
    return fmt::format("choosing by this table: no ε covers it, for {}\n", cost.why_none);
  }
  const auto text = [](const std::optional<double>& epsilon) {
    return epsilon ? fmt::format("{:.4g}", *epsilon) : std::string("∞");
  };
  return fmt::format(
      "choosing by this table: all {} runs together cost {} {} at δ = {} against the {}, their scores not counted;\n"
      "private selection of the best of {} trials on average would cost {}, and what their scores cost\n",
      cost.runs, privacy::epsilon_name(cost.basis), text(cost.all_epsilon), cost.delta, cost.observer, cost.runs,
      text(cost.best_epsilon));
}

Table table_of(const experiments::SweepTable& result) {
  const experiments::CellResult& first = result.cells.front();
  const bool named = !first.row.empty(), compared = !result.against.empty();
  std::vector<std::string> headers;
  for (const auto& [key, value] : first.settings.items()) headers.push_back(key);
  if (named) headers.emplace_back("row");
  privacy::Basis weakest = privacy::Basis::kProven;
  for (const experiments::CellResult& cell : result.cells) weakest = privacy::weaker(weakest, cell.basis);
  headers.insert(headers.end(), {"claimed ε", privacy::epsilon_name(weakest), "seeds",
                                 result.metric + (is_share(result.metric) ? " %" : ""), "± std"});
  if (compared) headers.emplace_back("p");
  Table table(headers);
  for (const experiments::CellResult& cell : result.cells) {
    std::vector<std::string> texts;
    for (const auto& [key, value] : cell.settings.items()) texts.push_back(setting_text(value));
    if (named) texts.push_back(cell.row);
    texts.push_back(epsilon_cell(cell.claimed_epsilon, weakest, weakest));
    texts.push_back(epsilon_cell(cell.proven_epsilon, cell.basis, weakest));
    texts.push_back(std::to_string(cell.values.size()));
    texts.push_back(metric_text(cell.mean, result.metric));
    texts.push_back(metric_text(cell.std, result.metric));
    if (compared) texts.push_back(cell.against ? figure_text(cell.p_value) : "reference");
    table.add_row(texts);
  }
  return table;
}

std::string describe(const experiments::SweepTable& result) {
  std::string problems;
  for (const experiments::CellResult& cell : result.cells) {
    for (const std::string& failure : cell.failures) problems += "failed: " + failure + "\n";
  }
  return table_of(result).to_string() + problems + (result.selection ? describe(*result.selection) : "");
}

void print_table(const experiments::SweepTable& result, const std::string& format) {
  if (format == "json") return print_json(experiments::to_json(result));
  if (format == "text") return print_text(describe(result));
  const Table table = table_of(result);
  print_text(format == "markdown" ? table.to_markdown() : format == "latex" ? table.to_latex() : table.to_csv());
  if (result.selection) info("{}", trim(describe(*result.selection)));
}

std::string describe(const experiments::Selection& selection) {
  const std::string cost = fmt::format(
      "ε {:.4g} at δ = {} against the {}, for the choice, its run and its score; {:.4g} trials on average\n",
      selection.epsilon, selection.delta, selection.observer, selection.mean_trials);
  if (!selection.best) return "no trial was drawn, nothing is selected\n" + cost;
  std::string text = selection.best->row.empty() ? "" : fmt::format("row = {}\n", selection.best->row);
  for (const auto& [key, value] : selection.best->settings.items()) {
    text += fmt::format("{} = {}\n", key, setting_text(value));
  }
  return text + fmt::format("accuracy {:.2f} % ± {:.2f} (noise)\n{}run directory {}\n", 100 * selection.best->score,
                            100 * selection.score_noise, cost, selection.best->run.string());
}

void select(const SweepCommand& command, const Command& given) {
  for (const char* name : {"--seeds", "--against", "--metric", "--format"}) {
    if (given.has(name)) fail_user("{} means nothing with --private-selection: only the best is shown", name);
  }
  // Each rank would select for itself, and the stated ε covers one selection.
  if (launch().rank > 0) throw artifacts::OthersAtWork("rank 0 refuses private selection over ranks");
  if (launch().size != 1) fail_user("--private-selection is for one process; leave out mpirun");
  const experiments::Selection selection = experiments::select_privately(
      {.config = command.config,
       .options = resolve(command, given),
       .number = settings::from_word<experiments::TrialNumber>(command.trial_law),
       .mean_trials = command.trials,
       .score_noise = command.score_noise,
       .folder = command.out.empty() ? run::default_group_folder(command.config, "selection") : fs::path(command.out),
       .threads = resolve_threads(command.jobs)});
  if (command.output.json) {
    print_json(experiments::to_json(selection));
  } else {
    print_text(describe(selection));
  }
}

void sweep(const SweepCommand& command, const Command& given) {
  catch_interrupts();
  if (given.has("--home")) {
    fail_user(
        "a sweep cannot be charged to the home {}: to choose among runs costs more than the run that is shown, and no "
        "row of a ledger says how much; charge single runs with sotto run --home {}",
        command.home, command.home);
  }
  if (command.private_selection) {
    select(command, given);
    return;
  }
  for (const char* name : {"--trials", "--trial-law", "--score-noise"}) {
    if (given.has(name)) fail_user("{} is for --private-selection", name);
  }
  const std::string what = command.quick ? "quick" : "sweep";
  const experiments::SweepTable table = experiments::run_sweep(
      {.config = command.config,
       .options = resolve(command, given),
       .quick = command.quick,
       .folder = command.out.empty() ? run::default_group_folder(command.config, what) : fs::path(command.out),
       .threads = resolve_threads(command.jobs)});
  print_table(table, command.output.json ? "json" : command.format);
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
  command.flag("--private-selection", options->private_selection,
               "Run a secret number of cells drawn at random and show only the best, by a noisy score");
  command.option("--trials", options->trials, "How many on average").shows_default();
  command.option("--trial-law", options->trial_law, "How their number is drawn")
      .one_of(settings::words<experiments::TrialNumber>())
      .shows_default();
  command.option("--score-noise", options->score_noise, "Standard deviation of the noise on the accuracy")
      .shows_default();
  command.option("--out", options->out, "Folder for the runs (default: runs/CONFIG-sweep, or -selection)");
  command.option("--home", options->home, "Refused: a home is charged by single runs (sotto run --home)");
  command.option("--jobs", options->jobs, "Runs at once, one thread each (default: all cores)").range(0, 1024);
  command.option("--format", options->format, "How the table is printed: text, markdown, latex, csv or json")
      .one_of({"text", "markdown", "latex", "csv", "json"})
      .shows_default();
  add_output_options(command, options->output, "The same as --format json");
  add_example(command,
              "sotto sweep examples/1_first_federation.toml --grid method.name=fedavg,local-only --seeds 5 "
              "--against method.name=local-only");
  command.callback([options, command] { sweep(*options, command); });
}

}  // namespace sotto::cli
