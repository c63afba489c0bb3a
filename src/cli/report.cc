// sotto report: runs side by side, as a table or as a page.
#include "artifacts/find_runs.h"
#include "artifacts/privacy_section.h"
#include "artifacts/run_directory.h"
#include "base/error.h"
#include "base/files.h"
#include "base/table.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "report/page.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <map>

namespace sotto::cli {
namespace {

using nlohmann::json;

struct ReportOptions {
  std::vector<std::string> runs;
  std::string page;
  OutputOptions output;
};

std::string percent(const json& value) {
  return value.is_number() ? fmt::format("{:.2f}", 100 * value.get<double>()) : "–";
}

std::optional<double> largest_epsilon(const json& spread) {
  return spread.is_null() ? std::nullopt : std::optional(spread["max"].get<double>());
}

// Run directories, and those below folders that are none: of a sweep, for example.
std::vector<std::string> runs_in(const std::vector<std::string>& folders) {
  std::vector<std::string> runs;
  for (const std::string& folder : folders) {
    if (!fs::is_directory(folder) || fs::exists(fs::path(folder) / "config.toml")) {
      runs.push_back(folder);  // a reader says what is wrong with it
      continue;
    }
    const auto below = artifacts::find_runs(folder);
    if (below.empty()) fail_user("{} is not a run directory, and there is none below it", folder);
    for (const fs::path& run : below) runs.push_back((fs::path(folder) / run).string());
  }
  return runs;
}

// A folder's last name, or its path where two have the same.
std::vector<report::NamedRun> named_runs(const std::vector<std::string>& folders) {
  std::map<std::string, int> uses;
  const auto last_name = [](const fs::path& folder) { return fs::weakly_canonical(folder).filename().string(); };
  for (const std::string& folder : folders) ++uses[last_name(folder)];
  std::vector<report::NamedRun> runs;
  for (const std::string& folder : folders) {
    const std::string name = last_name(folder);
    runs.push_back({uses[name] == 1 && !name.empty() ? name : folder, folder});
  }
  return runs;
}

void write_page(const ReportOptions& options) {
  if (fs::path(options.page).extension() != ".html") fail_user("-o {}: the page is a file NAME.html", options.page);
  privacy::GuaranteeCache cache;
  write_file_atomically(options.page, report::page_html(report::page_document(named_runs(options.runs), cache)));
  print_note(options.page + "\n");
}

void print_table(const ReportOptions& options) {
  std::vector<std::optional<json>> summaries;
  privacy::Basis weakest = privacy::Basis::kProven;
  for (const std::string& run : options.runs) {
    summaries.push_back(artifacts::RunReader(run).summary());
    if (summaries.back()) weakest = privacy::weaker(weakest, artifacts::basis_in(*summaries.back()));
  }
  json all = json::array();
  Table table({"run", "method", "dataset", "seed", "rounds", "accuracy %", "± std", "worst %", "global %", "claimed ε",
               privacy::epsilon_name(weakest), "seconds"});
  for (size_t i = 0; i < summaries.size(); ++i) {
    const std::string& run = options.runs[i];
    if (!summaries[i]) {
      const size_t rounds = artifacts::RunReader(run).rounds().size();
      table.add_row({run, fmt::format("not finished: {} rounds done", rounds)});
      all.push_back({{"run", run}, {"finished", false}, {"rounds_done", rounds}});
      continue;
    }
    const json& s = *summaries[i];
    const bool printed = s.value("variant", "sound") != "sound";
    table.add_row({run, s["method"].get<std::string>() + (printed ? " (paper)" : ""), s["dataset"], s["seed"].dump(),
                   s["rounds"].dump(), percent(s["accuracy"]["mean"]), percent(s["accuracy"]["std"]),
                   percent(s["accuracy"]["worst"]), percent(s["accuracy_global"]),
                   epsilon_cell(largest_epsilon(s["privacy"]["claimed_epsilon"]), weakest, weakest),
                   epsilon_cell(largest_epsilon(s["privacy"]["proven_epsilon"]), artifacts::basis_in(s), weakest),
                   fmt::format("{:.1f}", s["seconds"].get<double>())});
    all.push_back({{"run", run}, {"finished", true}, {"summary", s}});
  }
  if (options.output.json) {
    print_json(all);
  } else {
    print_text(table.to_string());
  }
}

}  // namespace

void add_report(Command& program) {
  auto options = std::make_shared<ReportOptions>();
  Command command = program.subcommand("report", "Compare runs side by side, as a table or as a page");
  command.option("RUN", options->runs, "Run directories, or folders of them").required();
  command.option("-o,--out", options->page, "Write one HTML page with charts instead, which needs no network");
  add_output_options(command, options->output, "Print the summaries as a JSON list");
  add_example(command, "sotto report runs/* -o report.html");
  command.callback([options] {
    options->runs = runs_in(options->runs);
    options->page.empty() ? print_table(*options) : write_page(*options);
  });
}

}  // namespace sotto::cli
