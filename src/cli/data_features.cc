// sotto data features: a dataset through a frozen backbone, once.
#include "base/interrupt.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "models/features.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace sotto::cli {
namespace {

struct FeaturesOptions {
  data::DataOptions data;
  uint64_t seed = 1;
  OutputOptions output;
};

void features(const FeaturesOptions& options) {
  catch_interrupts();
  const models::Features found = models::load_features(options.data, options.seed);
  const data::Dataset& dataset = found.dataset;
  const int64_t width = dataset.record_shape().at(0);
  if (options.output.json) {
    print_json({{"dataset", dataset.name},
                {"backbone", options.data.features},
                {"train_records", dataset.train.size()},
                {"test_records", dataset.test.size()},
                {"width", width},
                {"file", found.file.string()},
                {"was_cached", found.was_cached}});
    return;
  }
  print_note(fmt::format("{} features of {} training and {} test records ({} wide) {} {}\n", options.data.features,
                         dataset.train.size(), dataset.test.size(), width,
                         found.was_cached ? "were already in" : "are now in", found.file.string()));
}

}  // namespace

void add_data_features(Command& data_command) {
  auto options = std::make_shared<FeaturesOptions>();
  Command command = data_command.subcommand("features", "Run a frozen backbone over a dataset and keep the features");
  command.option("name", options->data.name, "A dataset of `sotto data list`").required();
  command
      .option("--backbone", options->data.features,
              "hog, scatter, resnet50, mobilenet-v2, minilm, or a name given to `sotto pretrain`")
      .required();
  command.option("--image-size", options->data.image_size, "Pixels a side (default: what suits the backbone)")
      .positive();
  command.option("--domains", options->data.domains, "Only these domains").comma_separated();
  command.option("--limit", options->data.limit, "At most so many training records").positive();
  command.option("--seed", options->seed, "Of the sample that --limit takes");
  add_output_options(command, options->output, "Print where the features are, as JSON");
  add_example(command, "sotto data features office-caltech10 --backbone resnet50");
  command.callback([options] { features(*options); });
}

}  // namespace sotto::cli
