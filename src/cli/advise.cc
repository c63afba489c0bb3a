// sotto advise: which recipe suits a federation, and whether it is worth joining at all.
#include "experiments/advise.h"

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

#include <memory>

namespace sotto::cli {
namespace {

constexpr const char* kHead = "# Recommended by `sotto advise`";

struct AdviseCommand {
  run::ConfigSource config;
  std::string proxy;
  int64_t records = 0;
  std::string out;
  std::string folder;
  int jobs = 0;
  OutputOptions output;
};

std::string percent(double share) {
  return fmt::format("{:.2f}", 100 * share);
}

std::string describe_condition(const experiments::WhatIf& point) {
  return point.key == "epsilon" ? fmt::format("ε = {:g}", point.value) : fmt::format("{:g} {}", point.value, point.key);
}

std::string describe_threshold(const experiments::Advice& advice, const std::string& key, const std::string& unit) {
  const auto from = advice.worth_from(key);
  if (!from) return fmt::format("at none of the simulated {}", unit);
  return key == "epsilon" ? fmt::format("from ε = {:g} on", *from) : fmt::format("from {:g} {} on", *from, unit);
}

std::string describe(const experiments::Advice& advice) {
  Table recipes({"recipe", "seeds", "accuracy %", "± std"});
  std::string failures;
  for (const experiments::RecipeResult& result : advice.table) {
    if (!result.simulated()) {
      failures += fmt::format("not simulated: {}: {}\n", result.recipe.name(), result.failure);
      continue;
    }
    recipes.add_row({result.recipe.name(), std::to_string(result.seeds.size()), percent(result.mean()),
                     result.seeds.size() > 1 ? percent(result.std()) : "–"});
  }
  Table around({"if there were", "joined %", "alone %"});
  for (const experiments::WhatIf& point : advice.what_if) {
    around.add_row({describe_condition(point), percent(point.joined), percent(point.alone)});
  }
  std::string text = recipes.to_string() + failures + "\n" + around.to_string() + "\n";
  for (const std::string& note : advice.notes) text += note + "\n";
  const experiments::RecipeResult& best = advice.recommended();
  text += fmt::format("recommended   {}: {} % expected (± {} over seeds), {} % alone\n", best.recipe.name(),
                      percent(best.mean()), percent(best.std()), percent(advice.alone.mean()));
  text +=
      fmt::format("joining       {}; it gains {}, {}, {} (one seed each)\n",
                  advice.worth_joining ? "is worth its noise" : "is not worth its noise here",
                  describe_threshold(advice, "epsilon", "budgets"), describe_threshold(advice, "clients", "clients"),
                  describe_threshold(advice, "records", "records"));
  return text;
}

// Only what an earlier advice wrote is written over.
void require_free(const std::string& file) {
  if (file.empty() || !fs::exists(file) || read_file(file).starts_with(kHead)) return;
  fail_user("--out {}: there is such a file, and no advice wrote it; name another", file);
}

std::string config_text(const experiments::Advice& advice) {
  const experiments::RecipeResult& best = advice.recommended();
  return fmt::format("{}: {}, {} % expected on data like {} (± {} over seeds), {} % alone.\n{}", kHead,
                     best.recipe.name(), percent(best.mean()), advice.proxy["name"].get<std::string>(),
                     percent(best.std()), percent(advice.alone.mean()), advice.config());
}

void advise(const AdviseCommand& command) {
  catch_interrupts();
  if (command.proxy.empty()) fail_user("--proxy is missing: name a public dataset, or the path of one, to simulate on");
  require_free(command.out);
  const fs::path folder =
      command.folder.empty() ? run::default_group_folder(command.config, "advice") : fs::path(command.folder);
  const experiments::Advice advice = experiments::advise({.config = command.config,
                                                          .proxy = command.proxy,
                                                          .records = command.records,
                                                          .folder = folder,
                                                          .threads = resolve_threads(command.jobs)});
  if (!command.out.empty()) write_file_atomically(command.out, config_text(advice));
  if (command.output.json) return print_json(nlohmann::json(experiments::to_json(advice)));
  print_text(describe(advice) + fmt::format("picture       {}\n", (folder / "advice.png").string()) +
             (command.out.empty() ? "" : fmt::format("config        {}\n", command.out)));
}

}  // namespace

void add_advise(Command& program) {
  auto options = std::make_shared<AdviseCommand>();
  Command command =
      program.subcommand("advise", "Find on public data which recipe suits a federation, and if joining is worth it");
  add_config_options(command, options->config);
  command.option("--proxy", options->proxy, "Public dataset to simulate on, by name or path; never the clients' own");
  command.option("--records", options->records, "Records of a client (default: as declared, or as the proxy has)")
      .range(0, 1 << 30);
  command.option("--out", options->out, "Write the config with the recommended recipe to this file");
  command.option("--folder", options->folder, "Folder for the runs and the picture (default: runs/CONFIG-advice)");
  command.option("--jobs", options->jobs, "Runs at once, one thread each (default: all cores)").range(0, 1024);
  add_output_options(command, options->output, "Print advice.json on standard output");
  add_example(command, "sotto advise examples/6_private_records.toml --proxy mnist --out advised.toml");
  command.callback([options] { advise(*options); });
}

}  // namespace sotto::cli
