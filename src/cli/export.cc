// sotto export: a trained model, or a run's figures, as files that other programs read.
#include "artifacts/csv_tables.h"
#include "artifacts/event_export.h"
#include "artifacts/trained_model.h"
#include "base/error.h"
#include "base/files.h"
#include "base/interrupt.h"
#include "base/log.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/config_options.h"
#include "cli/model_source.h"
#include "cli/output.h"
#include "io/safetensors.h"
#include "methods/catalogue.h"
#include "methods/prompts/prompt_file.h"
#include "models/script/script_model.h"
#include "models/weights/weight_store.h"
#include "models/weights/weights.h"

#include <nlohmann/json.hpp>

#include <chrono>
#include <cstdio>
#include <thread>

namespace sotto::cli {
namespace {

constexpr auto kPoll = std::chrono::milliseconds(300);

struct ExportOptions {
  ModelSource model;
  std::string out;          // one of these three
  std::string csv;          // a file, or - for standard output
  std::string tensorboard;  // a folder
  std::string table = "clients";
  bool per_client = false;
  bool follow = false;
  OutputOptions output;
};

void export_model(const ExportOptions& options) {
  const fs::path path = options.out;
  const std::string format = path.extension().string();
  if (format != ".pt" && format != ".pth" && format != ".safetensors") {
    fail_user("--out {}: end the name in .pt (a PyTorch state dict) or .safetensors", options.out);
  }
  const artifacts::TrainedModel model = open_model(options.model);
  const config::RunSpec& spec = model.setup().spec();
  NamedTensors weights = model.weights();
  if (model.setup().method().uses_model && spec.model.name == "torchscript") {
    weights = models::with_all_names(std::move(weights), models::find_weights(spec.model.weights));
  }
  const data::Dataset& dataset = model.setup().dataset();
  if (methods::holds_prompt(spec, weights)) {
    if (format != ".safetensors") fail_user("--out {}: a prompt is kept as .safetensors", options.out);
    methods::write_prompt_file(
        path, methods::prompt_file_of(spec, dataset.class_names, dataset.record_shape().front(), weights));
  } else if (format == ".safetensors") {
    io::write_safetensors(path, {.tensors = weights, .metadata = {{"model", model.setup().spec().model.name}}});
  } else {
    models::write_state_dict(path, weights);
  }
  const std::string why_not_private = model.why_not_private();
  if (!why_not_private.empty()) warn("{}", why_not_private);
  nlohmann::json value = {{"file", options.out},       {"model", methods::trained_model_name(spec)},
                          {"tensors", weights.size()}, {"parameters", total_elements(weights)},
                          {"round", model.round()},    {"not_private", nullptr}};
  if (!why_not_private.empty()) value["not_private"] = why_not_private;
  if (options.output.json) {
    print_json(value);
  } else {
    print_note(fmt::format("{}: {} tensors, {} values, the model after round {}\n", options.out, weights.size(),
                           total_elements(weights), model.round()));
  }
}

void export_csv(const ExportOptions& options) {
  const artifacts::RunReader run(options.model.folder);
  const config::RunSpec spec = run::load_spec({.config = options.model.folder, .overrides = {}});
  const artifacts::CsvTable table = options.table == "clients"  ? artifacts::clients_csv(run, spec)
                                    : options.table == "rounds" ? artifacts::rounds_csv(run, spec)
                                                                : artifacts::ledger_csv(run);
  if (options.csv == "-") {
    print_text(table.text);
    return;
  }
  write_file_atomically(options.csv, table.text);
  if (options.output.json) {
    print_json({{"file", options.csv}, {"table", options.table}, {"rows", table.rows}});
  } else {
    print_note(fmt::format("{}: the table of {}, {} rows\n", options.csv, options.table, table.rows));
  }
}

void export_events(const ExportOptions& options) {
  const artifacts::RunReader run(options.model.folder);
  artifacts::EventExport events(run, run::load_spec({.config = options.model.folder, .overrides = {}}),
                                options.tensorboard, options.per_client);
  if (options.follow) {
    catch_interrupts();
    info("following {} until it is finished", options.model.folder);
  }
  for (bool finished = !options.follow; !finished;) {
    finished = run.summary().has_value();
    events.update();
    if (finished) break;
    if (interrupted()) {
      throw Interrupted(fmt::format("stopped after round {}; the same command goes on from there", events.rounds()));
    }
    std::this_thread::sleep_for(kPoll);
  }
  events.update();
  if (options.output.json) {
    print_json({{"file", events.file().string()}, {"rounds", events.rounds()}});
  } else {
    print_note(fmt::format("{}: {} rounds; look at them with: tensorboard --logdir {}\n", events.file().string(),
                           events.rounds(), options.tensorboard));
  }
}

void export_run(const ExportOptions& options) {
  const bool events = !options.tensorboard.empty();
  if (options.out.empty()) refuse_home(options.model.folder, events ? "--tensorboard" : "--csv");
  if ((options.follow || options.per_client) && !events) {
    fail_user("--follow and --per-client belong to --tensorboard");
  }
  if (events) {
    export_events(options);
  } else if (!options.csv.empty()) {
    export_csv(options);
  } else {
    export_model(options);
  }
}

}  // namespace

void add_export(Command& program) {
  auto options = std::make_shared<ExportOptions>();
  Command command =
      program.subcommand("export", "Write a trained model, a run's figures as CSV, or event files for TensorBoard");
  command.option("FOLDER", options->model.folder, "A run directory, a client's home, or a server's folder").required();
  Command what = command.exactly_one_of("What to write (one of)");
  what.option("--out,-o", options->out, "The model: NAME.pt (PyTorch state dict) or NAME.safetensors");
  what.option("--csv", options->csv, "A table of the run: a file, or - for standard output");
  what.option("--tensorboard", options->tensorboard, "A folder for the run's event file");
  add_model_options(command, options->model);
  command.option("--table", options->table, "Which table --csv writes: clients, rounds or ledger")
      .one_of({"clients", "rounds", "ledger"})
      .shows_default();
  command.flag("--per-client", options->per_client, "Events for each client too, besides their histogram");
  command.flag("--follow", options->follow, "Go on adding events until the run is finished");
  add_output_options(command, options->output, "Print what was written as JSON");
  add_example(command,
              "sotto export runs/first -o model.pt\n"
              "  sotto export hospital-1 -o own.safetensors\n"
              "  sotto export runs/first --csv clients.csv\n"
              "  sotto export runs/first --tensorboard events/first --follow");
  command.callback([options] { export_run(*options); });
}

}  // namespace sotto::cli
