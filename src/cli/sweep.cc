// sotto sweep: a grid of settings times seeds, as one table.
#include "base/error.h"
#include "base/files.h"
#include "base/interrupt.h"
#include "base/log.h"
#include "base/statistics.h"
#include "base/table.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/jobs.h"
#include "cli/output.h"
#include "cli/run_config.h"
#include "cli/sweep_grid.h"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <cmath>

namespace sotto::cli {
namespace {

using nlohmann::json;

struct SweepOptions {
  RunConfigOptions config;
  std::vector<std::string> grid;
  int64_t seeds = 5;
  std::string against;
  std::string metric = "accuracy.mean";
  std::string out;
  int jobs = 0;
  OutputOptions output;
};

std::vector<Job> plan_jobs(const SweepOptions& options, const std::vector<Cell>& cells, const fs::path& folder) {
  std::vector<Job> jobs;
  for (size_t cell = 0; cell < cells.size(); ++cell) {
    for (int64_t seed = 1; seed <= options.seeds; ++seed) {
      std::vector<std::string> overrides = cells[cell].overrides;
      overrides.push_back(fmt::format("seed={}", seed));
      jobs.push_back(make_job(cell, load_spec(options.config, overrides), folder));
    }
  }
  return jobs;
}

double metric_of(const json& summary, const std::string& metric) {
  const json* value = &summary;
  for (const std::string& part : split(metric, '.')) {
    if (!value->is_object() || !value->contains(part)) fail_user("--metric {}: summaries have no such value", metric);
    value = &(*value)[part];
  }
  return value->is_number() ? value->get<double>() : std::nan("");
}

json collect(const SweepOptions& options, const std::vector<Cell>& cells, const std::vector<Job>& jobs) {
  json rows = json::array();
  for (const Cell& cell : cells) {
    rows.push_back({{"settings", cell.settings},
                    {"seeds", json::array()},
                    {"values", json::array()},
                    {"runs", json::array()},
                    {"failures", json::array()}});
  }
  for (const Job& job : jobs) {
    json& row = rows[job.cell];
    if (!job.failure.empty()) row["failures"].push_back(job.failure);
    if (!job.summary) continue;
    const double value = metric_of(*job.summary, options.metric);
    if (!std::isfinite(value)) continue;
    row["seeds"].push_back(job.spec.seed);
    row["values"].push_back(value);
    row["runs"].push_back(job.folder.string());
  }
  return rows;
}

void add_statistics(json& rows, std::optional<size_t> reference) {
  for (json& row : rows) {
    const auto values = row["values"].get<std::vector<double>>();
    row["mean"] = values.empty() ? json(nullptr) : json(mean(values));
    row["std"] = values.size() < 2 ? json(nullptr) : json(sample_std(values));
    row["p_value"] = nullptr;
    if (!reference || &row == &rows[*reference]) continue;
    const double p = mann_whitney_p(values, rows[*reference]["values"].get<std::vector<double>>());
    if (std::isfinite(p)) row["p_value"] = p;
  }
}

std::string cell_text(const json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

std::string table_of(const json& rows, const std::string& metric, std::optional<size_t> reference) {
  std::vector<std::string> headers;
  for (const auto& [key, value] : rows[0]["settings"].items()) headers.push_back(key);
  headers.insert(headers.end(), {"seeds", metric, "± std"});
  if (reference) headers.emplace_back("p");
  Table table(headers);
  std::string problems;
  for (size_t i = 0; i < rows.size(); ++i) {
    const json& row = rows[i];
    std::vector<std::string> cells;
    for (const auto& [key, value] : row["settings"].items()) cells.push_back(cell_text(value));
    cells.push_back(std::to_string(row["values"].size()));
    cells.push_back(row["mean"].is_null() ? "–" : fmt::format("{:.4f}", row["mean"].get<double>()));
    cells.push_back(row["std"].is_null() ? "–" : fmt::format("{:.4f}", row["std"].get<double>()));
    if (reference) {
      cells.push_back(i == *reference            ? "reference"
                      : row["p_value"].is_null() ? "–"
                                                 : fmt::format("{:.4f}", row["p_value"].get<double>()));
    }
    table.add_row(cells);
    for (const json& failure : row["failures"]) problems += "failed: " + failure.get<std::string>() + "\n";
  }
  return table.to_string() + problems;
}

void sweep(const SweepOptions& options) {
  catch_interrupts();
  const std::vector<Cell> cells = expand_grid(options.grid);
  const std::optional<size_t> reference =
      options.against.empty() ? std::nullopt : std::optional(find_cell(cells, options.against));
  const fs::path folder = options.out.empty() ? default_group_folder(options.config, "sweep") : fs::path(options.out);
  std::vector<Job> jobs = plan_jobs(options, cells, folder);
  info("{} settings × {} seeds = {} runs into {}", cells.size(), options.seeds, jobs.size(), folder.string());
  run_jobs(jobs, {.title = "sweep", .threads = resolve_threads(options.jobs)});
  if (interrupted()) throw Interrupted("stopped; the same command continues the sweep");

  json rows = collect(options, cells, jobs);
  add_statistics(rows, reference);
  const json value = {{"metric", options.metric},
                      {"test", "Mann–Whitney U, two-sided, exact up to 60 values; the seed is the unit"},
                      {"against", reference ? json(cells[*reference].settings) : json(nullptr)},
                      {"cells", rows}};
  make_folder(folder);
  write_file_atomically(folder / "sweep.json", value.dump(2) + "\n");
  if (options.output.json) {
    print_json(value);
  } else {
    print_text(table_of(rows, options.metric, reference));
  }
  for (const Job& job : jobs) {
    if (!job.failure.empty()) fail_user("some runs failed, the first with: {}", job.failure);
  }
}

}  // namespace

void add_sweep(CLI::App& program) {
  auto options = std::make_shared<SweepOptions>();
  CLI::App* command = program.add_subcommand("sweep", "Run a grid of settings times seeds and compare them");
  add_run_config_options(*command, options->config);
  command->add_option("--grid", options->grid, "KEY=V1,V2,… (repeatable: all combinations)")
      ->take_all()
      ->allow_extra_args(false);
  command->add_option("--seeds", options->seeds, "Seeds 1 … N for every setting")->check(CLI::Range(1, 10000));
  command->add_option("--against", options->against, "KEY=VALUE[,…] of the setting that the others are tested against");
  command->add_option("--metric", options->metric, "Which value of summary.json to compare");
  command->add_option("--out", options->out, "Folder for the runs (default: runs/CONFIG-sweep)");
  command->add_option("--jobs", options->jobs, "Runs at once, one thread each (default: all cores)")
      ->check(CLI::Range(0, 1024));
  add_output_options(*command, options->output, "Print the table as JSON");
  add_example(*command,
              "sotto sweep examples/1_first_federation.toml --grid method.name=fedavg,local-only --seeds 5 "
              "--against method.name=local-only");
  command->callback([options] { sweep(*options); });
}

}  // namespace sotto::cli
