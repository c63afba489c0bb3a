// sotto sweep: a grid of settings times seeds, as one table.
#include "artifacts/run_directory.h"
#include "base/error.h"
#include "base/files.h"
#include "base/interrupt.h"
#include "base/log.h"
#include "base/statistics.h"
#include "base/table.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/config_options.h"
#include "cli/output.h"
#include "experiments/jobs.h"
#include "experiments/sweep_grid.h"
#include "experiments/sweep_options.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>

namespace sotto::cli {
namespace {

using nlohmann::json;

constexpr int64_t kQuickSeeds = 2;
constexpr const char* kRoundsTo = "rounds_to:";

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

std::vector<experiments::Job> plan_jobs(const SweepCommand& command, const experiments::SweepOptions& table,
                                        const std::vector<experiments::Cell>& cells, const fs::path& folder) {
  std::vector<experiments::Job> jobs;
  const uint64_t first = run::load_spec(command.config).seed;
  for (uint64_t seed = first; seed < first + static_cast<uint64_t>(table.seeds); ++seed) {
    for (size_t cell = 0; cell < cells.size(); ++cell) {
      std::vector<std::string> overrides = cells[cell].overrides;
      overrides.insert(overrides.end(), table.quick.begin(), table.quick.end());
      overrides.push_back(fmt::format("seed={}", seed));
      jobs.push_back(experiments::make_job(cell, run::load_spec(command.config, overrides), folder));
    }
  }
  return jobs;
}

// The first round whose accuracy is at least the target; one more than there are if none is.
double rounds_to(const experiments::Job& job, const std::string& target) {
  double wanted = 0;
  try {
    wanted = std::stod(target);
  } catch (const std::exception&) {
    fail_user("--metric {}{}: write an accuracy behind it, for example {}0.9", kRoundsTo, target, kRoundsTo);
  }
  for (const json& round : artifacts::RunReader(job.folder).rounds()) {
    const json evaluation = round.value("evaluation", json());
    if (evaluation.is_object() && evaluation["accuracy"]["mean"].get<double>() >= wanted) {
      return round["round"].get<double>();
    }
  }
  return static_cast<double>(job.spec.rounds + 1);
}

double metric_of(const experiments::Job& job, const std::string& metric) {
  if (metric.starts_with(kRoundsTo)) return rounds_to(job, metric.substr(std::string(kRoundsTo).size()));
  const json* value = &*job.summary;
  for (const std::string& part : split(metric, '.')) {
    if (!value->is_object() || !value->contains(part)) fail_user("--metric {}: summaries have no such value", metric);
    value = &(*value)[part];
  }
  return value->is_number() ? value->get<double>() : std::nan("");
}

// The largest of any client and seed so far; null once there is one without a finite ε.
void take_largest(json& row, const json& summary, const char* key) {
  const json& spread = summary["privacy"][key];
  if (row[key].is_null()) return;
  row[key] = spread.is_null() ? json(nullptr) : json(std::max(row[key].get<double>(), spread["max"].get<double>()));
}

json collect(const std::string& metric, const std::vector<experiments::Cell>& cells,
             const std::vector<experiments::Job>& jobs) {
  json rows = json::array();
  for (const experiments::Cell& cell : cells) {
    rows.push_back({{"row", cell.row},
                    {"settings", cell.settings},
                    {"claimed_epsilon", 0.0},
                    {"proven_epsilon", 0.0},
                    {"seeds", json::array()},
                    {"values", json::array()},
                    {"runs", json::array()},
                    {"failures", json::array()}});
  }
  for (const experiments::Job& job : jobs) {
    json& row = rows[job.cell];
    if (!job.failure.empty()) row["failures"].push_back(job.failure);
    if (!job.summary) continue;
    const double value = metric_of(job, metric);
    if (!std::isfinite(value)) continue;
    take_largest(row, *job.summary, "claimed_epsilon");
    take_largest(row, *job.summary, "proven_epsilon");
    row["seeds"].push_back(job.spec.seed);
    row["values"].push_back(value);
    row["runs"].push_back(job.folder.string());
  }
  return rows;
}

void add_statistics(json& rows, const std::vector<std::optional<size_t>>& references) {
  for (size_t i = 0; i < rows.size(); ++i) {
    json& row = rows[i];
    const auto values = row["values"].get<std::vector<double>>();
    row["mean"] = values.empty() ? json(nullptr) : json(mean(values));
    row["std"] = values.size() < 2 ? json(nullptr) : json(sample_std(values));
    row["p_value"] = nullptr;
    row["against"] = references[i] ? json(*references[i]) : json(nullptr);
    if (!references[i]) continue;
    const double p = mann_whitney_p(values, rows[*references[i]]["values"].get<std::vector<double>>());
    if (std::isfinite(p)) row["p_value"] = p;
  }
}

std::string cell_text(const json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

std::string epsilon_text(const json& value) {
  return value.is_null() ? "∞" : fmt::format("{:.4g}", value.get<double>());
}

std::string table_of(const json& rows, const std::string& metric, bool compared) {
  const bool named = !rows[0]["row"].get<std::string>().empty();
  std::vector<std::string> headers;
  for (const auto& [key, value] : rows[0]["settings"].items()) headers.push_back(key);
  if (named) headers.emplace_back("row");
  headers.insert(headers.end(), {"claimed ε", "proven ε", "seeds", metric, "± std"});
  if (compared) headers.emplace_back("p");
  Table table(headers);
  std::string problems;
  for (const json& row : rows) {
    std::vector<std::string> cells;
    for (const auto& [key, value] : row["settings"].items()) cells.push_back(cell_text(value));
    if (named) cells.push_back(row["row"]);
    cells.push_back(epsilon_text(row["claimed_epsilon"]));
    cells.push_back(epsilon_text(row["proven_epsilon"]));
    cells.push_back(std::to_string(row["values"].size()));
    cells.push_back(row["mean"].is_null() ? "–" : fmt::format("{:.4f}", row["mean"].get<double>()));
    cells.push_back(row["std"].is_null() ? "–" : fmt::format("{:.4f}", row["std"].get<double>()));
    if (compared) {
      cells.push_back(row["against"].is_null()   ? "reference"
                      : row["p_value"].is_null() ? "–"
                                                 : fmt::format("{:.4f}", row["p_value"].get<double>()));
    }
    table.add_row(cells);
    for (const json& failure : row["failures"]) problems += "failed: " + failure.get<std::string>() + "\n";
  }
  return table.to_string() + problems;
}

void sweep(const SweepCommand& command, const Command& given) {
  catch_interrupts();
  const experiments::SweepOptions table = resolve(command, given);
  const std::vector<experiments::Cell> cells = experiments::combine(table.rows, experiments::expand_grid(table.grid));
  const auto compared_with = experiments::references(cells, table.against);
  const std::string what = command.quick ? "quick" : "sweep";
  const fs::path folder = command.out.empty() ? run::default_group_folder(command.config, what) : fs::path(command.out);
  std::vector<experiments::Job> jobs = plan_jobs(command, table, cells, folder);
  info("{} settings × {} seeds = {} runs into {}", cells.size(), table.seeds, jobs.size(), folder.string());
  experiments::run_jobs(jobs, {.title = "sweep", .threads = resolve_threads(command.jobs)});
  if (interrupted()) throw Interrupted("stopped; the same command continues the sweep");

  json rows = collect(table.metric, cells, jobs);
  add_statistics(rows, compared_with);
  const json value = {{"metric", table.metric},
                      {"test", "Mann–Whitney U, two-sided, exact up to 60 values; the seed is the unit"},
                      {"against", table.against.empty() ? json(nullptr) : json(table.against)},
                      {"quick", command.quick},
                      {"cells", rows}};
  make_folder(folder);
  write_file_atomically(folder / "sweep.json", value.dump(2) + "\n");
  if (command.output.json) {
    print_json(value);
  } else {
    print_text(table_of(rows, table.metric, !table.against.empty()));
  }
  for (const experiments::Job& job : jobs) {
    if (!job.failure.empty()) fail_user("some runs failed, the first with: {}", job.failure);
  }
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
