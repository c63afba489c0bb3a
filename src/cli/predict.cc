// sotto predict: what a trained model says of records it is shown.
#include "artifacts/trained_model.h"
#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "base/table.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/model_source.h"
#include "cli/output.h"
#include "data/custom.h"
#include "data/source.h"
#include "io/images/decode.h"
#include "methods/prompts/prompt_file.h"

#include <ATen/ATen.h>

#include <nlohmann/json.hpp>

#include <algorithm>

namespace sotto::cli {
namespace {

using nlohmann::json;

struct PredictOptions {
  ModelSource model;
  std::string prompt;  // a prompt's file instead of a model
  std::vector<std::string> images;
  std::string data;
  int64_t test = 0;
  int64_t top = 3;
  OutputOptions output;
};

// Records to be classified, with a name for each and the true class where it is known.
struct Question {
  data::Records records;
  std::vector<std::string> names;
  bool has_truth = false;
};

// Grey from colours by mean, colours from grey by repetition.
at::Tensor with_channels(const at::Tensor& images, int64_t channels) {
  if (images.size(1) == channels) return images;
  if (channels == 1) return images.to(at::kFloat).mean(1, true).round_().to(at::kByte);
  return images.expand({images.size(0), channels, images.size(2), images.size(3)}).contiguous();
}

Question from_images(const std::vector<std::string>& files, const data::Dataset& trained_on) {
  if (trained_on.kind != data::Kind::kImages) {
    fail_user("--image: this model does not read images; use --data or --test");
  }
  const std::vector<int64_t> shape = trained_on.record_shape();
  const auto count = static_cast<int64_t>(files.size());
  const io::EncodedImages encoded{.count = count,
                                  .bytes = [&](int64_t i) { return read_file(files[static_cast<size_t>(i)]); },
                                  .where = [&](int64_t i) { return files[static_cast<size_t>(i)]; }};
  Question question;
  question.records.x = with_channels(io::decode_images(encoded, shape[1], "decoding"), shape[0]);
  question.records.y = at::zeros({count}, at::kLong);
  question.names = files;
  return question;
}

Question from_path(const std::string& path, const federation::Setup& setup) {
  const data::Dataset& trained_on = setup.dataset();
  data::DataOptions options;
  options.name = "custom";
  options.path = path;
  if (data::may_be_table(path)) options.schema = setup.spec().data.schema;
  if (trained_on.kind == data::Kind::kImages) options.image_size = trained_on.record_shape()[1];
  data::Dataset dataset = data::load_dataset(options, 0);
  if (dataset.kind != trained_on.kind || dataset.record_shape() != trained_on.record_shape()) {
    fail_user("{}: its records have shape {}, the model takes {}", path, json(dataset.record_shape()).dump(),
              json(trained_on.record_shape()).dump());
  }
  Question question;
  question.records = dataset.test.size() > 0 ? dataset.test : dataset.train;
  question.has_truth = dataset.class_names == trained_on.class_names;
  for (int64_t i = 0; i < question.records.size(); ++i) question.names.push_back(fmt::format("record {}", i));
  return question;
}

Question from_held_out(int64_t count, const artifacts::TrainedModel& model) {
  const federation::Setup& setup = model.setup();
  const data::Dataset& dataset = setup.dataset();
  if (dataset.train.size() == 0) fail_user("--test: a server has no records; use --data or --image");
  const bool own_split = dataset.test.size() > 0;
  const data::Records& split = own_split ? dataset.test : dataset.train;
  const std::optional<int64_t> client = model.client();
  at::Tensor rows = client || !own_split ? setup.partition().shard(client.value_or(0)).test : at::arange(split.size());
  rows = rows.narrow(0, 0, std::min(count, rows.size(0)));
  Question question;
  question.records.x = split.x.index_select(0, rows);
  question.records.y = split.y.index_select(0, rows);
  question.has_truth = true;
  for (int64_t i = 0; i < rows.size(0); ++i)
    question.names.push_back(fmt::format("test record {}", rows[i].item<int64_t>()));
  return question;
}

Question ask(const PredictOptions& options, const artifacts::TrainedModel& model) {
  const int chosen = (options.images.empty() ? 0 : 1) + (options.data.empty() ? 0 : 1) + (options.test > 0 ? 1 : 0);
  if (chosen != 1) fail_user("say what to classify: --image FILE…, --data PATH, or --test COUNT");
  if (!options.images.empty()) return from_images(options.images, model.setup().dataset());
  if (!options.data.empty()) return from_path(options.data, model.setup());
  return from_held_out(options.test, model);
}

// The first `top` of the classes, most probable first.
json best_classes(const at::Tensor& probabilities, const std::vector<std::string>& names, int64_t top) {
  const auto [best, classes] = probabilities.topk(std::min(top, probabilities.size(0)));
  json list = json::array();
  for (int64_t k = 0; k < classes.size(0); ++k) {
    list.push_back(
        {{"class", names[static_cast<size_t>(classes[k].item<int64_t>())]}, {"probability", best[k].item<double>()}});
  }
  return list;
}

json answer(const artifacts::TrainedModel& model, const Question& question, int64_t top) {
  const data::Dataset& dataset = model.setup().dataset();
  data::Batch batch;
  json answers = json::array();
  constexpr int64_t kBatch = 256;
  for (int64_t begin = 0; begin < question.records.size(); begin += kBatch) {
    const int64_t count = std::min(kBatch, question.records.size() - begin);
    data::gather(question.records, at::arange(begin, begin + count, at::kLong), batch);
    const at::Tensor probabilities = at::softmax(model.predict(batch.x), 1);
    for (int64_t i = 0; i < count; ++i) {
      json entry = {{"record", question.names[static_cast<size_t>(begin + i)]},
                    {"classes", best_classes(probabilities[i], dataset.class_names, top)}};
      if (question.has_truth) entry["truth"] = dataset.class_names[static_cast<size_t>(batch.y[i].item<int64_t>())];
      answers.push_back(std::move(entry));
    }
  }
  return answers;
}

std::string table_of(const json& answers, bool has_truth) {
  std::vector<std::string> headers = {"record", "class", "probability", "then"};
  if (has_truth) headers.emplace_back("truth");
  Table table(headers);
  int64_t right = 0;
  for (const json& entry : answers) {
    const json& classes = entry["classes"];
    std::string then;
    for (size_t k = 1; k < classes.size(); ++k) {
      then += fmt::format("{}{} {:.3f}", k == 1 ? "" : ", ", classes[k]["class"].get<std::string>(),
                          classes[k]["probability"].get<double>());
    }
    std::vector<std::string> cells = {entry["record"], classes[0]["class"],
                                      fmt::format("{:.3f}", classes[0]["probability"].get<double>()), then};
    if (has_truth) {
      cells.push_back(entry["truth"]);
      right += entry["truth"] == classes[0]["class"] ? 1 : 0;
    }
    table.add_row(cells);
  }
  std::string text = table.to_string();
  if (has_truth) text += fmt::format("{} of {} right\n", right, answers.size());
  return text;
}

json answer_with_prompt(const PredictOptions& options) {
  if (!options.data.empty() || options.test > 0 || options.images.empty()) {
    fail_user("--prompt classifies images: say which with --image FILE…");
  }
  const methods::PromptFile file = methods::read_prompt_file(options.prompt);
  const methods::PromptClassifier classifier(file);
  json answers = json::array();
  for (const std::string& image : options.images) {
    answers.push_back(
        {{"record", image},
         {"classes", best_classes(classifier.probabilities(read_file(image), image), file.classes, options.top)}});
  }
  return answers;
}

void predict(const PredictOptions& options) {
  if (options.model.folder.empty() == options.prompt.empty()) {
    fail_user("name a run directory, a home or a server's folder, or a prompt with --prompt FILE");
  }
  if (!options.prompt.empty()) {
    const json answers = answer_with_prompt(options);
    if (options.output.json) {
      print_json(answers);
    } else {
      print_text(table_of(answers, false));
    }
    return;
  }
  const artifacts::TrainedModel model = open_model(options.model);
  const Question question = ask(options, model);
  const json answers = answer(model, question, options.top);
  if (const std::string why = model.why_not_private(); !why.empty()) warn("{}", why);
  if (options.output.json) {
    print_json(answers);
  } else {
    print_text(table_of(answers, question.has_truth));
  }
}

}  // namespace

void add_predict(Command& program) {
  auto options = std::make_shared<PredictOptions>();
  Command command = program.subcommand("predict", "Classify records with a trained model");
  command.option("FOLDER", options->model.folder, "A run directory, a client's home, or a server's folder");
  command.option("--prompt", options->prompt, "A prompt made by sotto export, instead of a run");
  add_model_options(command, options->model);
  command.option("--image", options->images, "Image files (PNG, JPEG)");
  command.option("--data", options->data, "A folder or file of records, as for data.path");
  command.option("--test", options->test, "The first so many held-out records").positive();
  command.option("--top", options->top, "How many classes to show per record").positive();
  add_output_options(command, options->output, "Print classes and probabilities as JSON");
  add_example(command,
              "sotto predict runs/first --test 5\n"
              "  sotto predict hospital-1 --data patients.csv\n"
              "  sotto predict --prompt prompt.safetensors --image photo.jpg");
  command.callback([options] { predict(*options); });
}

}  // namespace sotto::cli
