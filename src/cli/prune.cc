// sotto prune: room from finished runs.
#include "artifacts/prune.h"

#include "base/error.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "settings/section.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace sotto::cli {
namespace {

using nlohmann::json;

struct PruneOptions {
  std::string runs;
  std::string keep = "none";
  OutputOptions output;
};

std::string size_text(int64_t bytes) {
  if (bytes >= 1'000'000'000) return fmt::format("{:.1f} GB", static_cast<double>(bytes) * 1e-9);
  if (bytes >= 1'000'000) return fmt::format("{:.1f} MB", static_cast<double>(bytes) * 1e-6);
  return fmt::format("{:.1f} kB", static_cast<double>(bytes) * 1e-3);
}

void run_prune(const PruneOptions& options) {
  const auto results = artifacts::prune(options.runs, settings::from_word<config::KeepStates>(options.keep));
  if (results.empty()) fail_user("there is no run directory in {}", options.runs);
  int64_t freed = 0, looked_at = 0;
  std::string left;
  json runs = json::array();
  for (const artifacts::Pruned& result : results) {
    freed += result.bytes;
    looked_at += result.left_for.empty() ? 1 : 0;
    if (!result.left_for.empty()) left += fmt::format("left as it was: {}, {}\n", result.run.string(), result.left_for);
    runs.push_back({{"run", result.run.string()},
                    {"freed_bytes", result.bytes},
                    {"left_for", result.left_for.empty() ? json() : json(result.left_for)}});
  }
  if (options.output.json) return print_json({{"freed_bytes", freed}, {"runs", runs}});
  print_text(fmt::format("{}{} of states removed from {} finished run{}\n", left, size_text(freed), looked_at,
                         looked_at == 1 ? "" : "s"));
}

}  // namespace

void add_prune(Command& program) {
  auto options = std::make_shared<PruneOptions>();
  Command command = program.subcommand("prune", "Remove clients' states of finished runs, which take the most room");
  command.option("RUNS", options->runs, "A run directory, or a folder with such in it").required();
  command.option("--keep", options->keep, "Which states stay: none, or those after the last round")
      .one_of(settings::words<config::KeepStates>())
      .shows_default();
  add_output_options(command, options->output, "Print {freed_bytes, runs} on standard output");
  add_example(command, "sotto prune runs/table-sweep");
  command.callback([options] { run_prune(*options); });
}

}  // namespace sotto::cli
