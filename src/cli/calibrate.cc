// sotto calibrate: the least noise that keeps a plan within (ε, δ).
#include "base/error.h"
#include "cli/account_batch.h"
#include "cli/account_options.h"
#include "cli/account_query.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/output.h"

#include <nlohmann/json.hpp>

namespace sotto::cli {
namespace {

using nlohmann::json;

struct CalibrateOptions {
  QuestionOptions question;
  OutputOptions output;
  bool batch = false;
};

json refusal() {
  return {{"noise_multiplier", nullptr}, {"epsilon", nullptr}};
}

void calibrate(const CalibrateOptions& options) {
  if (options.batch) {
    run_batch(refusal(), [](const json& question) { return answer(parse_calibrate_query(question)); });
    return;
  }
  if (!options.output.json) {
    const json result = answer(parse_calibrate_query(options.question.question()));
    print_text(fmt::format("noise multiplier {:.8g} for epsilon {} at delta {} by {}\n",
                           result["noise_multiplier"].get<double>(), result["epsilon"].get<double>(),
                           result["delta"].get<double>(), result["method"].get<std::string>()));
    return;
  }
  try {
    print_json(answer(parse_calibrate_query(options.question.question())));
  } catch (const UserError& error) {
    json result = refusal();
    result["reason"] = error.what();
    print_json(result);
    throw;
  }
}

}  // namespace

void add_calibrate(Command& program) {
  auto options = std::make_shared<CalibrateOptions>();
  Command command = program.subcommand("calibrate", "The least noise that keeps a plan within (epsilon, delta)");
  QuestionOptions& question = options->question;
  question.add_text(command, "mechanism", "gaussian (default) or laplace");
  question.add_number(command, "epsilon", "Target epsilon");
  question.add_number(command, "delta", "Target delta");
  question.add_number(command, "steps", "How many steps (default 1)");
  question.add_text(command, "sampling", "none, poisson or allocation (default: poisson if there is a sampling rate)");
  question.add_number(command, "sampling_rate", "Poisson sampling rate of records (default 1)");
  question.add_number(command, "batches", "Allocation: batches in an epoch; a record is in one, drawn at random");
  question.add_number(command, "epochs", "Allocation: how many epochs (default 1), instead of steps");
  question.add_text(command, "adjacency",
                    "add-remove, zero-out, replace or replace-same-label; required with sampling");
  question.add_text(command, "method", "By which accountant (default: exact where it exists, otherwise pld)");
  question.add_compose(command);
  command.flag("--batch", options->batch, "Answer one JSON object a line from standard input");
  add_output_options(command, options->output, "Print the answer as JSON");
  add_example(command,
              "sotto calibrate --epsilon 1 --delta 1e-5 --steps 1000 --sampling-rate 0.01 --adjacency add-remove\n"
              "  sotto calibrate --epsilon 1 --delta 1e-5 --sampling allocation --batches 12 --epochs 10 --adjacency "
              "zero-out");
  command.callback([options] { calibrate(*options); });
}

}  // namespace sotto::cli
