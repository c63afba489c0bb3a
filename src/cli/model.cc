// sotto model: models of one's own.
#include "base/error.h"
#include "base/table.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "models/script/script_model.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <memory>
#include <string>

namespace sotto::cli {
namespace {

using nlohmann::json;

struct CheckOptions {
  std::string file;
  OutputOptions output;
};

json layers_json(const models::ScriptLayers& found) {
  json layers = json::array();
  for (const models::ScriptLayer& layer : found.layers) {
    layers.push_back({{"name", layer.name},
                      {"kind", layer.kind},
                      {"parameters", layer.parameters},
                      {"uses", layer.uses},
                      {"trained", layer.trained}});
  }
  return {{"layers", layers}, {"operators", found.operators}, {"dropouts", found.dropouts}, {"classes", found.classes}};
}

std::string describe(const models::ScriptLayers& found) {
  Table table({"layer", "kind", "parameters", "uses", ""});
  int64_t parameters = 0;
  for (const models::ScriptLayer& layer : found.layers) {
    parameters += layer.parameters;
    table.add_row({layer.name, layer.kind, std::to_string(layer.parameters), std::to_string(layer.uses),
                   layer.trained ? "" : "frozen"});
  }
  const std::string dropout =
      found.dropouts == 0
          ? ""
          : fmt::format("its {} dropout layer{} off; model.dropout = P turns dropout on, without privacy for records\n",
                        found.dropouts, found.dropouts == 1 ? " is" : "s are");
  return fmt::format(
      "{}{} layers with {} parameters, {} operators without; {} classes\nper-example clipping is exact for these "
      "layers: "
      "use it with model.name = \"torchscript\" and model.weights = FILE\nwhether it keeps records apart is tried out "
      "when a run begins, with records of their shape\n{}",
      table.to_string(), found.layers.size(), parameters, found.operators, found.classes, dropout);
}

void run_check(const CheckOptions& options) {
  const models::ScriptLayers found = models::inspect_script(options.file);
  if (options.output.json) return print_json(layers_json(found));
  print_text(describe(found));
}

}  // namespace

void add_model(Command& program) {
  auto options = std::make_shared<CheckOptions>();
  Command command = program.subcommand("model", "Models of your own");
  command.require_subcommand();
  Command check = command.subcommand("check", "What Sotto makes of a TorchScript archive, or why it cannot take it");
  check.option("FILE", options->file, "The archive: torch.jit.script(model).save(FILE), or torch.jit.trace").required();
  add_output_options(check, options->output, "Print {layers, operators, dropouts, classes} on standard output");
  add_example(check, "sotto model check net.pt");
  check.callback([options] { run_check(*options); });
}

}  // namespace sotto::cli
