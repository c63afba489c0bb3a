// sotto attack: what an attacker finds out from a run's models and recorded uploads.
#include "attacks/catalogue.h"
#include "base/interrupt.h"
#include "base/table.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/config_options.h"
#include "cli/output.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace sotto::cli {
namespace {

using nlohmann::json;

struct Options {
  std::string run;
  std::string attack;
  int64_t client = -1;
  int threads = 0;
  attacks::AttackOptions settings;
  OutputOptions output;
};

std::string describe(const json& result) {
  const bool compared = result.contains("baseline");
  Table table(compared ? std::vector<std::string>{"", "this run", "without privacy"}
                       : std::vector<std::string>{"", "this run"});
  for (const auto& [key, value] : result.items()) {
    if (!value.is_number()) continue;
    std::vector<std::string> row = {key, fmt::format("{:.4g}", value.get<double>())};
    if (compared && result["baseline"].contains(key) && result["baseline"][key].is_number()) {
      row.push_back(fmt::format("{:.4g}", result["baseline"][key].get<double>()));
    }
    table.add_row(std::move(row));
  }
  return table.to_string();
}

void run_attack(const Options& options) {
  attacks::AttackOptions settings = options.settings;
  if (options.client >= 0) settings.client = options.client;
  settings.threads = resolve_threads(options.threads);
  const attacks::AttackEntry& entry = attacks::find_attack(options.attack);
  end_on_interrupt(entry.shared
                       ? "stopped; the same command goes on with the shadow models that are missing"
                       : "stopped; this attack keeps nothing before its end, so the same command begins again");
  const json result = attacks::attack(entry, attacks::Target(options.run), settings);
  if (options.output.json) return print_json(result);
  print_text(describe(result));
}

}  // namespace

void add_attack(Command& program) {
  auto options = std::make_shared<Options>();
  Command command = program.subcommand("attack", "Attack a run by its models and recorded uploads");
  command.option("RUN", options->run, "a run directory").required();
  std::string help;
  for (const attacks::AttackEntry& entry : attacks::catalogue()) {
    help += fmt::format("{}{}: {}", help.empty() ? "" : "; ", entry.name, entry.what);
  }
  command.option("--attack", options->attack, help).required();
  command.option("--client", options->client, "whose model or upload").at_least(0);
  command.option("--round", options->settings.round, "of the upload; 0 = the one whose model is known")
      .range(0, 1000000)
      .shows_default();
  command.option("--records", options->settings.records, "members, and as many others, at most")
      .range(2, 1000000)
      .shows_default();
  command.option("--shadows", options->settings.shadows, "shadow models").range(2, 10000).shows_default();
  command.option("--steps", options->settings.steps, "of reconstructions; 0 = 400, as printed 10,000")
      .range(0, 1000000)
      .shows_default();
  command.option("--optimizer", options->settings.optimizer, "of reconstructions: adam or lbfgs")
      .one_of({"adam", "lbfgs"})
      .shows_default();
  command.flag("--as-printed", options->settings.as_printed, "hijacking: with the paper's loss and settings");
  command.option("--extractor", options->settings.extractor,
                 "TorchScript module whose features Fréchet distances are of; without one the model's own");
  command.option("--seed", options->settings.seed, "of shadows and starting points").shows_default();
  add_threads_option(command, options->threads);
  add_output_options(command, options->output, "what attacks/NAME.json holds");
  add_example(command, "sotto attack runs/records --attack lira");
  command.callback([options] { run_attack(*options); });
}

}  // namespace sotto::cli
