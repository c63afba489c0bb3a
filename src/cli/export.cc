// sotto export: a trained model as a file that other programs read.
#include "artifacts/trained_model.h"
#include "base/error.h"
#include "base/files.h"
#include "base/safetensors.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "models/weights.h"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

namespace sotto::cli {
namespace {

struct ExportOptions {
  std::string run;
  int64_t client = -1;
  std::string out;
  OutputOptions output;
};

void export_model(const ExportOptions& options) {
  const fs::path path = options.out;
  const std::string format = path.extension().string();
  if (format != ".pt" && format != ".pth" && format != ".safetensors") {
    fail_user("--out {}: end the name in .pt (a PyTorch state dict) or .safetensors", options.out);
  }
  const artifacts::TrainedModel model(options.run, options.client < 0 ? std::nullopt : std::optional(options.client));
  const NamedTensors weights = model.weights();
  if (format == ".safetensors") {
    write_safetensors(path, {.tensors = weights, .metadata = {{"model", model.setup().spec.model.name}}});
  } else {
    models::write_state_dict(path, weights);
  }
  const nlohmann::json value = {{"file", options.out},
                                {"model", model.setup().spec.model.name},
                                {"tensors", weights.size()},
                                {"parameters", total_elements(weights)},
                                {"round", model.round()}};
  if (options.output.json) {
    print_json(value);
  } else {
    print_text(fmt::format("{}: {} tensors, {} values, the model after round {}\n", options.out, weights.size(),
                           total_elements(weights), model.round()));
  }
}

}  // namespace

void add_export(CLI::App& program) {
  auto options = std::make_shared<ExportOptions>();
  CLI::App* command =
      program.add_subcommand("export", "Write a trained model as a PyTorch state dict or safetensors file");
  command->add_option("RUN", options->run, "A run directory")->required();
  command->add_option("--client", options->client, "This client's model (default: the global one)");
  command->add_option("--out,-o", options->out, "The file: NAME.pt or NAME.safetensors")->required();
  add_output_options(*command, options->output, "Print what was written as JSON");
  add_example(*command, "sotto export runs/first -o model.pt");
  command->callback([options] { export_model(*options); });
}

}  // namespace sotto::cli
