#include "experiments/sweep.h"

#include "artifacts/privacy_section.h"
#include "artifacts/run_directory.h"
#include "base/error.h"
#include "base/files.h"
#include "base/interrupt.h"
#include "base/log.h"
#include "base/statistics.h"
#include "base/text.h"
#include "experiments/jobs.h"
#include "experiments/sweep_grid.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string_view>
#include <system_error>

namespace sotto::experiments {
namespace {

using nlohmann::json;

constexpr const char* kRoundsTo = "rounds_to:";

// The row's name and the point of the grid, or the method where a sweep has neither.
std::string label_of(const Cell& cell, const config::RunSpec& spec) {
  std::vector<std::string> parts;
  if (!cell.row.empty()) parts.push_back(cell.row);
  for (const auto& [key, value] : cell.settings.items()) {
    parts.push_back(key.substr(key.rfind('.') + 1) + "=" + value.get<std::string>());
  }
  return parts.empty() ? spec.method : join(parts, "+");
}

// Seeds are the outer loop: the whole table is known once before it is known better.
std::vector<Job> plan_jobs(const SweepRequest& request, const std::vector<Cell>& cells) {
  std::vector<Job> jobs;
  // With the settings of a cell: what the config leaves to its grid need not stand by itself.
  const uint64_t first = run::load_spec(request.config, cells.front().overrides).seed;
  for (uint64_t seed = first; seed < first + static_cast<uint64_t>(request.options.seeds); ++seed) {
    for (size_t cell = 0; cell < cells.size(); ++cell) {
      std::vector<std::string> overrides = cells[cell].overrides;
      overrides.insert(overrides.end(), request.options.quick.begin(), request.options.quick.end());
      overrides.push_back(fmt::format("seed={}", seed));
      const config::RunSpec spec = run::load_spec(request.config, overrides);
      jobs.push_back(make_job(cell, spec, request.folder, label_of(cells[cell], spec)));
    }
  }
  return jobs;
}

// The accuracy of rounds_to:ACCURACY.
double target_of(const std::string& metric) {
  const std::string target = metric.substr(std::string_view(kRoundsTo).size());
  double wanted = 0;
  const auto [end, error] = std::from_chars(target.data(), target.data() + target.size(), wanted);
  if (error != std::errc() || end != target.data() + target.size()) {
    fail_user("--metric {}: write an accuracy behind it, for example {}0.9", metric, kRoundsTo);
  }
  return wanted;
}

// Before anything runs; what can be known of a metric only from a summary is said when there is one.
void require_metric(const std::string& metric) {
  static const std::vector<std::string> known = {"accuracy",
                                                 "accuracy_global",
                                                 "accuracy_per_domain",
                                                 "auroc",
                                                 "auroc_global",
                                                 "balanced_accuracy",
                                                 "balanced_accuracy_global",
                                                 "diverged_steps",
                                                 "global_test_accuracy",
                                                 "last_ten",
                                                 "local_accuracy",
                                                 "neighbour_accuracy",
                                                 "noise_total",
                                                 "privacy",
                                                 "rounds",
                                                 "samples_per_second",
                                                 "seconds",
                                                 "upload_bytes",
                                                 "validation_accuracy"};
  static const std::vector<std::string> spreads = {"mean", "std", "worst", "per_client"};
  if (metric.starts_with(kRoundsTo)) {
    target_of(metric);
    return;
  }
  const std::vector<std::string> parts = split(metric, '.');
  if (std::find(known.begin(), known.end(), parts.front()) == known.end()) {
    fail_user("--metric {}: summaries have no such value{}; they have {}", metric, did_you_mean(parts.front(), known),
              join(known, ", "));
  }
  static const std::vector<std::string> of_clients = {"accuracy",           "auroc",
                                                      "balanced_accuracy",  "global_test_accuracy",
                                                      "local_accuracy",     "neighbour_accuracy",
                                                      "validation_accuracy"};
  const bool spread = std::find(of_clients.begin(), of_clients.end(), parts.front()) != of_clients.end();
  if (!spread) return;
  if (parts.size() < 2 || std::find(spreads.begin(), spreads.end(), parts[1]) == spreads.end()) {
    fail_user("--metric {}: write {}.mean, {}.std or {}.worst", metric, parts[0], parts[0], parts[0]);
  }
}

// The first round whose accuracy is at least the target; one more than there are if none is.
double rounds_to(const Job& job, double wanted) {
  for (const json& round : artifacts::RunReader(job.folder).rounds()) {
    const json evaluation = round.value("evaluation", json());
    if (evaluation.is_object() && evaluation["accuracy"]["mean"].get<double>() >= wanted) {
      return round["round"].get<double>();
    }
  }
  return static_cast<double>(job.spec.rounds + 1);
}

double metric_of(const Job& job, const std::string& metric) {
  if (metric.starts_with(kRoundsTo)) return rounds_to(job, target_of(metric));
  const json summary = artifacts::to_json(*job.summary);
  const json* value = &summary;
  for (const std::string& part : split(metric, '.')) {
    if (!value->is_object() || !value->contains(part)) fail_user("--metric {}: summaries have no such value", metric);
    value = &(*value)[part];
  }
  return value->is_number() ? value->get<double>() : std::nan("");
}

// `spread` is of the clients of one more run; null if one of them has no finite ε.
void take_largest(std::optional<double>& largest, const std::optional<artifacts::EpsilonSpread>& spread) {
  if (!largest) return;
  largest = spread ? std::optional(std::max(*largest, spread->max)) : std::nullopt;
}

std::vector<CellResult> collect(const std::string& metric, const std::vector<Cell>& cells,
                                const std::vector<Job>& jobs) {
  std::vector<CellResult> results(cells.size());
  for (size_t i = 0; i < cells.size(); ++i) {
    results[i].row = cells[i].row;
    results[i].settings = cells[i].settings;
  }
  for (const Job& job : jobs) {
    CellResult& result = results[job.cell];
    if (!job.failure.empty()) result.failures.push_back(job.failure);
    if (!job.summary) continue;
    const double value = metric_of(job, metric);
    if (!std::isfinite(value)) continue;
    const artifacts::PrivacySummary& privacy = job.summary->privacy;
    take_largest(result.claimed_epsilon, privacy.declared.claimed);
    take_largest(result.proven_epsilon, privacy.declared.proven);
    result.basis = privacy::weaker(result.basis, privacy.basis);
    result.seeds.push_back(job.spec.seed);
    result.values.push_back(value);
    result.runs.push_back(job.folder);
  }
  return results;
}

void add_statistics(std::vector<CellResult>& results, const std::vector<std::optional<size_t>>& compared_with) {
  for (size_t i = 0; i < results.size(); ++i) {
    CellResult& result = results[i];
    if (!result.values.empty()) result.mean = mean(result.values);
    if (result.values.size() >= 2) result.std = sample_std(result.values);
    result.against = compared_with[i];
    if (!result.against) continue;
    if (result.values.size() < 2 || results[*result.against].values.size() < 2) continue;  // one seed is no sample
    const double p = mann_whitney_p(result.values, results[*result.against].values);
    if (std::isfinite(p)) result.p_value = p;
  }
}

std::string first_failure(const std::vector<Job>& jobs) {
  const auto failed = std::find_if(jobs.begin(), jobs.end(), [](const Job& job) { return !job.failure.empty(); });
  return failed == jobs.end() ? std::string() : failed->failure;
}

template <typename Value>
json value_or_null(const std::optional<Value>& value) {
  return value ? json(*value) : json(nullptr);
}

json cell_json(const CellResult& cell) {
  json runs = json::array();
  for (const fs::path& folder : cell.runs) runs.push_back(folder.string());
  return {{"row", cell.row},
          {"settings", cell.settings},
          {"claimed_epsilon", value_or_null(cell.claimed_epsilon)},
          {"proven_epsilon", value_or_null(cell.proven_epsilon)},
          {"basis", settings::word(cell.basis)},
          {"seeds", cell.seeds},
          {"values", cell.values},
          {"runs", runs},
          {"failures", cell.failures},
          {"mean", value_or_null(cell.mean)},
          {"std", value_or_null(cell.std)},
          {"p_value", value_or_null(cell.p_value)},
          {"against", value_or_null(cell.against)}};
}

}  // namespace

SweepTable run_sweep(const SweepRequest& request) {
  const SweepOptions& options = request.options;
  require_metric(options.metric);
  const std::vector<Cell> cells = combine(options.rows, expand_grid(options.grid));
  const auto compared_with = references(cells, options.against);
  std::vector<Job> jobs = plan_jobs(request, cells);
  info("{} settings × {} seeds = {} runs into {}", cells.size(), options.seeds, jobs.size(), request.folder.string());
  run_jobs(jobs, {.title = "sweep", .threads = request.threads});
  if (interrupted()) throw Interrupted("stopped; the same command continues the sweep");

  SweepTable table;
  table.metric = options.metric;
  table.against = options.against;
  table.quick = request.quick;
  table.cells = collect(options.metric, cells, jobs);
  table.first_failure = first_failure(jobs);
  table.selection = selection_cost(jobs);
  add_statistics(table.cells, compared_with);
  make_folder(request.folder);
  write_file_atomically(request.folder / "sweep.json", to_json(table).dump(2) + "\n");
  return table;
}

json to_json(const SweepTable& table) {
  json cells = json::array();
  for (const CellResult& cell : table.cells) cells.push_back(cell_json(cell));
  return {{"metric", table.metric},
          {"test", "Mann–Whitney U, two-sided, exact up to 60 values; the seed is the unit"},
          {"against", table.against.empty() ? json(nullptr) : json(table.against)},
          {"quick", table.quick},
          {"selection", table.selection ? to_json(*table.selection) : json(nullptr)},
          {"cells", cells}};
}

}  // namespace sotto::experiments
