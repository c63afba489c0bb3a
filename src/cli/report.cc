// sotto report: finished runs side by side.
#include "artifacts/run_directory.h"
#include "base/table.h"
#include "cli/commands.h"
#include "cli/output.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace sotto::cli {
namespace {

using nlohmann::json;

struct ReportOptions {
  std::vector<std::string> runs;
  OutputOptions output;
};

std::string percent(const json& value) {
  return value.is_number() ? fmt::format("{:.2f}", 100 * value.get<double>()) : "–";
}

std::string epsilon(const json& value) {
  return value.is_null() ? "∞" : fmt::format("{:.4g}", value["max"].get<double>());
}

void report(const ReportOptions& options) {
  json all = json::array();
  Table table({"run", "method", "dataset", "seed", "rounds", "accuracy %", "± std", "worst %", "global %", "proven ε",
               "seconds"});
  for (const std::string& run : options.runs) {
    const artifacts::RunReader reader(run);
    const auto summary = reader.summary();
    if (!summary) {
      table.add_row({run, fmt::format("not finished: {} rounds done", reader.rounds().size())});
      all.push_back({{"run", run}, {"finished", false}, {"rounds_done", reader.rounds().size()}});
      continue;
    }
    const json& s = *summary;
    table.add_row({run, s["method"], s["dataset"], s["seed"].dump(), s["rounds"].dump(), percent(s["accuracy"]["mean"]),
                   percent(s["accuracy"]["std"]), percent(s["accuracy"]["worst"]), percent(s["accuracy_global"]),
                   epsilon(s["privacy"]["proven_epsilon"]), fmt::format("{:.1f}", s["seconds"].get<double>())});
    all.push_back({{"run", run}, {"finished", true}, {"summary", s}});
  }
  if (options.output.json) {
    print_json(all);
  } else {
    print_text(table.to_string());
  }
}

}  // namespace

void add_report(CLI::App& program) {
  auto options = std::make_shared<ReportOptions>();
  CLI::App* command = program.add_subcommand("report", "Compare runs side by side");
  command->add_option("RUN", options->runs, "Run directories")->required();
  add_output_options(*command, options->output, "Print the summaries as a JSON list");
  add_example(*command, "sotto report runs/*");
  command->callback([options] { report(*options); });
}

}  // namespace sotto::cli
