// sotto pretrain: train a backbone centrally on a public dataset and keep it.
#include "models/pretrain.h"

#include "base/error.h"
#include "base/interrupt.h"
#include "base/log.h"
#include "base/progress.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/output.h"

#include <nlohmann/json.hpp>

namespace sotto::cli {
namespace {

struct PretrainCommand {
  models::PretrainOptions options;
  std::string norm = settings::word(models::Normalisation::kGroup);
  bool plain = false;
  OutputOptions output;
};

void pretrain(PretrainCommand& command) {
  catch_interrupts();
  command.options.augment = !command.plain;
  command.options.model.norm = settings::from_word<models::Normalisation>(command.norm);
  const auto result = models::pretrain(command.options, [&](const models::EpochReport& epoch) {
    const ProgressPause pause;
    info("epoch {} of {}: loss {:.4f}, accuracy {:.4f}, {}", epoch.epoch, command.options.epochs, epoch.loss,
         epoch.accuracy, format_duration(epoch.seconds));
  });
  const auto& card = result.card;
  if (result.interrupted) {
    if (card.epochs == 0) fail_user("interrupted in the first epoch: nothing was saved");
    warn("interrupted: the weights are those of epoch {} of {}", card.epochs, card.planned);
  }
  if (command.output.json) {
    auto json = to_json(card);
    json["name"] = result.name;
    json["file"] = result.file.string();
    print_json(json);
    return;
  }
  print_note(fmt::format("{}: accuracy {:.4f} on {}; use it as weights = \"{}\" or features = \"{}\" ({})\n",
                         result.name, card.accuracy, card.dataset, result.name, result.name, result.file.string()));
}

void add_model_options(Command& command, models::PretrainOptions& options, std::string& norm) {
  command.option("--model", options.model.name, "A model: vit-tiny, resnet18, cnn, …").required();
  command.option("--norm", norm, "ResNets: group or batch").one_of(settings::words<models::Normalisation>());
  command.option("--width", options.model.width, "ViT");
  command.option("--depth", options.model.depth, "ViT");
  command.option("--heads", options.model.heads, "ViT");
  command.option("--patch", options.model.patch, "ViT: pixels of a patch");
  command.option("--hidden", options.model.hidden, "MLP: widths of the hidden layers").comma_separated();
  command.option("--dropout", options.model.dropout, "Share of features dropped while training");
  command.option("--weights", options.model.weights, "Start from these weights instead of random ones");
}

void add_data_options(Command& command, models::PretrainOptions& options) {
  command.option("--data", options.data.name, "A dataset of `sotto data list`").required();
  command.option("--image-size", options.data.image_size, "Resize images to so many pixels a side");
  command.option("--domains", options.data.domains, "Only these domains").comma_separated();
  command.option("--limit", options.data.limit, "At most so many training records");
}

}  // namespace

void add_pretrain(Command& program) {
  auto options = std::make_shared<PretrainCommand>();
  models::PretrainOptions& training = options->options;
  Command command = program.subcommand("pretrain", "Train a backbone on a public dataset and keep it");
  add_model_options(command, training, options->norm);
  add_data_options(command, training);
  command.option("--name", training.name, "What to call the weights (default: MODEL-DATASET)");
  command.option("--epochs", training.epochs, "Passes over the data").shows_default();
  command.option("--batch", training.batch, "Records per step").shows_default();
  command.option("--optimizer", training.optimizer, "adamw, or sgd with momentum").shows_default();
  command.option("--lr", training.lr, "Peak learning rate; warm-up, then a cosine to zero").shows_default();
  command.option("--weight-decay", training.weight_decay).shows_default();
  command.flag("--plain", options->plain, "No shifting and mirroring of images");
  command.option("--seed", training.seed).shows_default();
  add_output_options(command, options->output, "Print what was trained as JSON");
  add_example(command, "sotto pretrain --model vit-tiny --data cifar10 --epochs 20");
  command.callback([options] { pretrain(*options); });
}

}  // namespace sotto::cli
