// sotto report: runs side by side, as a table or as a page.
#include "artifacts/find_runs.h"
#include "artifacts/run_directory.h"
#include "artifacts/summary.h"
#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "base/table.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/model_source.h"
#include "cli/output.h"
#include "report/page.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <span>

namespace sotto::cli {
namespace {

using artifacts::RunSummary;
using nlohmann::json;

constexpr size_t kShownClients = 24;  // in a terminal; other formats have them all

struct ReportOptions {
  std::vector<std::string> runs;
  std::string page;
  std::string format = "text";
  bool clients = false;
  OutputOptions output;
};

std::string percent(double value) {
  return std::isfinite(value) ? fmt::format("{:.2f}", 100 * value) : "–";
}

std::optional<double> largest_epsilon(const std::optional<artifacts::EpsilonSpread>& spread) {
  return spread ? std::optional(spread->max) : std::nullopt;
}

// Run directories, and those below folders that are none: of a sweep, for example.
std::vector<std::string> runs_in(const std::vector<std::string>& folders) {
  std::vector<std::string> runs;
  for (const std::string& folder : folders) {
    refuse_home(folder, "report");
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

std::string formatted(const Table& table, const std::string& format) {
  if (format == "markdown") return table.to_markdown();
  if (format == "latex") return table.to_latex();
  return format == "csv" ? table.to_csv() : table.to_string(kLine);
}

federation::Spread accuracy_of(const RunSummary& summary) {
  return summary.evaluation.over(&federation::ClientScore::accuracy);
}

std::map<int64_t, double> client_accuracies(const RunSummary& summary) {
  std::map<int64_t, double> accuracies;
  for (const federation::ClientScore& score : summary.evaluation.clients) accuracies[score.client] = score.accuracy;
  return accuracies;
}

// What a run's row of the table is made of.
struct RunRow {
  std::string run;
  size_t rounds_done = 0;
  std::optional<RunSummary> summary;
};

// The page shows settings from one file and results from another.
bool has_its_config(const artifacts::RunReader& reader, const RunSummary& summary) {
  try {
    return reader.spec().hash() == summary.config_hash;
  } catch (const UserError&) {
    return false;
  }
}

void warn_of_other_configs(const std::vector<std::string>& runs) {
  if (runs.empty()) return;
  const std::string more = runs.size() == 1 ? "" : fmt::format(" (and {} more)", runs.size() - 1);
  warn("{}/config.toml{} is not what it was run with, by its hash: it was changed, or another version wrote it",
       runs.front(), more);
}

std::vector<RunRow> rows_of(const std::vector<std::string>& runs) {
  std::vector<RunRow> rows;
  std::vector<std::string> others;
  for (const std::string& run : runs) {
    const artifacts::RunReader reader(run);
    rows.push_back({run, 0, reader.summary()});
    if (rows.back().summary && !has_its_config(reader, *rows.back().summary)) others.push_back(run);
    if (rows.back().summary) continue;
    reader.spec();  // a folder whose config cannot be read is no run that could be finished
    rows.back().rounds_done = reader.rounds().size();
  }
  warn_of_other_configs(others);
  return rows;
}

// A column of the table; of those that may be left out, the least important goes first.
struct Column {
  std::string title;
  int importance = 0;  // 0: stays
  std::function<std::string(const RunSummary& summary)> cell;
};

std::vector<Column> columns_of(privacy::Basis weakest) {
  const auto part_of_accuracy = [](double federation::Spread::*part) {
    return [part](const RunSummary& s) { return percent(accuracy_of(s).*part); };
  };
  return {{"method", 0, [](const RunSummary& s) { return s.method + (s.variant == "sound" ? "" : " (paper)"); }},
          {"dataset", 3, [](const RunSummary& s) { return s.dataset; }},
          {"seed", 4, [](const RunSummary& s) { return std::to_string(s.seed); }},
          {"rounds", 5, [](const RunSummary& s) { return std::to_string(s.rounds); }},
          {"accuracy %", 0, part_of_accuracy(&federation::Spread::mean)},
          {"± std", 2, part_of_accuracy(&federation::Spread::std)},
          {"worst %", 6, part_of_accuracy(&federation::Spread::worst)},
          {"global %", 7, [](const RunSummary& s) { return percent(s.evaluation.global_accuracy); }},
          {"claimed ε", 0,
           [=](const RunSummary& s) {
             return epsilon_cell(largest_epsilon(s.privacy.declared.claimed), weakest, weakest);
           }},
          {privacy::epsilon_name(weakest), 0,
           [=](const RunSummary& s) {
             return epsilon_cell(largest_epsilon(s.privacy.declared.proven), s.privacy.basis, weakest);
           }},
          {"seconds", 1, [](const RunSummary& s) { return fmt::format("{:.1f}", s.seconds); }}};
}

Table table_of(const std::vector<RunRow>& rows, const std::vector<Column>& columns) {
  std::vector<std::string> titles = {"run"};
  for (const Column& column : columns) titles.push_back(column.title);
  Table table(titles);
  for (const RunRow& row : rows) {
    std::vector<std::string> cells = {row.run};
    if (row.summary) {
      for (const Column& column : columns) cells.push_back(column.cell(*row.summary));
    } else {
      cells.push_back(fmt::format("not finished: {} rounds done", row.rounds_done));
    }
    table.add_row(std::move(cells));
  }
  return table;
}

bool fits_a_line(const std::string& table) {
  return display_width(table.substr(0, table.find('\n'))) <= kLine;
}

// All columns, or as text those that there is room for.
std::string runs_table(const std::vector<RunRow>& rows, const std::string& format) {
  privacy::Basis weakest = privacy::Basis::kProven;
  for (const RunRow& row : rows) {
    if (row.summary) weakest = privacy::weaker(weakest, row.summary->privacy.basis);
  }
  std::vector<Column> columns = columns_of(weakest);
  if (format != "text") return formatted(table_of(rows, columns), format);
  std::string text = table_of(rows, columns).to_string();
  for (int importance = 1; !fits_a_line(text) && importance <= 7; ++importance) {
    std::erase_if(columns, [&](const Column& column) { return column.importance == importance; });
    text = table_of(rows, columns).to_string();
  }
  return fits_a_line(text) ? text : table_of(rows, columns).to_string(kLine);
}

// How many clients are better off than in the first run.
std::vector<std::string> better_than_first(const std::vector<RunRow>& rows) {
  const std::map<int64_t, double> first = client_accuracies(*rows.front().summary);
  std::vector<std::string> cells = {"better off", "–"};
  for (const RunRow& row : std::span(rows).subspan(1)) {
    int64_t better = 0, both = 0;
    for (const auto& [client, accuracy] : client_accuracies(*row.summary)) {
      const auto before = first.find(client);
      if (before == first.end() || !std::isfinite(accuracy) || !std::isfinite(before->second)) continue;
      ++both;
      better += accuracy > before->second ? 1 : 0;
    }
    cells.push_back(fmt::format("{} of {}", better, both));
  }
  return cells;
}

// One line per client, one column per run: each client's own accuracy. As text, the first few clients.
Table clients_of(const std::vector<RunRow>& rows, const ReportOptions& options) {
  std::vector<std::string> headers = {"client"};
  std::vector<std::string> means = {"mean"}, worst = {"worst"};
  std::vector<int64_t> clients;
  std::vector<std::map<int64_t, double>> accuracies;
  for (const RunRow& row : rows) {
    if (!row.summary) fail_user("{} is not finished, so its clients have no accuracy yet; resume it first", row.run);
    headers.push_back(fs::path(row.run).lexically_normal().string() + " %");
    means.push_back(percent(accuracy_of(*row.summary).mean));
    worst.push_back(percent(accuracy_of(*row.summary).worst));
    accuracies.push_back(client_accuracies(*row.summary));
    for (const auto& [client, value] : accuracies.back()) clients.push_back(client);
  }
  std::sort(clients.begin(), clients.end());
  clients.erase(std::unique(clients.begin(), clients.end()), clients.end());
  const config::RunSpec names = artifacts::RunReader(rows.front().run).spec();
  Table table(headers);
  const bool all_shown = options.format != "text" || clients.size() <= kShownClients;
  const size_t shown = all_shown ? clients.size() : kShownClients;
  for (const int64_t client : std::span(clients).first(shown)) {
    std::vector<std::string> cells = {client < names.data.clients ? names.client_name(client) : std::to_string(client)};
    for (const std::map<int64_t, double>& own : accuracies) {
      const auto found = own.find(client);
      cells.push_back(found == own.end() ? "–" : percent(found->second));
    }
    table.add_row(std::move(cells));
  }
  if (!all_shown) table.add_row({fmt::format("… {} more", clients.size() - shown)});
  table.add_row(std::move(means));
  table.add_row(std::move(worst));
  if (rows.size() > 1) table.add_row(better_than_first(rows));
  return table;
}

json to_json(const std::vector<RunRow>& rows) {
  json all = json::array();
  for (const RunRow& row : rows) {
    json value = {{"run", row.run}, {"finished", row.summary.has_value()}};
    if (row.summary) {
      value["summary"] = artifacts::summary_document(*row.summary);
    } else {
      value["rounds_done"] = row.rounds_done;
    }
    all.push_back(std::move(value));
  }
  return all;
}

void write_page(const ReportOptions& options) {
  if (fs::path(options.page).extension() != ".html") fail_user("-o {}: the page is a file NAME.html", options.page);
  rows_of(options.runs);  // refuses and warns as the table does
  privacy::GuaranteeCache cache;
  write_file_atomically(options.page, report::page_html(report::page_document(named_runs(options.runs), cache)));
  print_note(options.page + "\n");
}

void print_table(const ReportOptions& options) {
  const std::vector<RunRow> rows = rows_of(options.runs);
  if (options.output.json) return print_json(to_json(rows));
  print_text(options.clients ? formatted(clients_of(rows, options), options.format) : runs_table(rows, options.format));
}

}  // namespace

void add_report(Command& program) {
  auto options = std::make_shared<ReportOptions>();
  Command command = program.subcommand("report", "Compare runs side by side, as a table or as a page");
  command.option("RUN", options->runs, "Run directories, or folders of them").required();
  command.option("-o,--out", options->page, "Write one HTML page with charts instead, which needs no network");
  command.flag("--clients", options->clients, "A line per client instead: its own accuracy in each run");
  command.option("--format", options->format, "How the table is printed: text, markdown, latex or csv")
      .one_of({"text", "markdown", "latex", "csv"});
  add_output_options(command, options->output, "Print the summaries as a JSON list");
  add_example(command, "sotto report runs/* -o report.html");
  command.callback([options] {
    options->runs = runs_in(options->runs);
    options->page.empty() ? print_table(*options) : write_page(*options);
  });
}

}  // namespace sotto::cli
