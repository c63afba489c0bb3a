// sotto account: what a sequence of releases costs.
#include "base/error.h"
#include "base/table.h"
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

struct AccountOptions {
  QuestionOptions question;
  OutputOptions output;
  bool batch = false;
};

json refusal() {
  return {{"epsilon", nullptr}};
}

// Prints the answer, or the refusal before it goes on to be an error.
void print_answer(const AccountOptions& options) {
  try {
    print_json(answer(parse_account_query(options.question.question())));
  } catch (const UserError& error) {
    json result = refusal();
    result["reason"] = error.what();
    print_json(result);
    throw;
  }
}

std::string cell(const json& value, const char* key) {
  return fmt::format("{:.6g}", value[key].get<double>());
}

std::string table_of_methods(AccountQuery query) {
  const char* asked = query.delta ? "epsilon" : "delta";
  Table table({"method", asked, "how"});
  for (const privacy::Method method : privacy::all_methods()) {
    query.method = method;
    const std::string name(privacy::to_text(method));
    try {
      table.add_row({name, cell(answer(query), asked), std::string(privacy::describe(method))});
    } catch (const UserError& error) {
      table.add_row({name, "", std::string("refused: ").append(error.what())});
    }
  }
  return table.to_string(kLine);
}

void account(const AccountOptions& options) {
  if (options.batch) {
    run_batch(refusal(), [](const json& question) { return answer(parse_account_query(question)); });
    return;
  }
  if (options.output.json) {
    print_answer(options);
    return;
  }
  const AccountQuery query = parse_account_query(options.question.question());
  if (query.order) {
    print_text(fmt::format("rdp {} at order {}\n", cell(answer(query), "rdp"), *query.order));
  } else if (query.method) {
    const json result = answer(query);
    print_text(fmt::format("epsilon {} at delta {} by {}\n", cell(result, "epsilon"), cell(result, "delta"),
                           result["method"].get<std::string>()));
  } else {
    print_text(table_of_methods(query));
  }
}

}  // namespace

void add_account(Command& program) {
  auto options = std::make_shared<AccountOptions>();
  Command command = program.subcommand("account", "What a sequence of releases costs in privacy");
  QuestionOptions& question = options->question;
  question.add_text(command, "mechanism",
                    "gaussian (default), laplace, pure, approximate, discrete-gaussian or bounded-range");
  question.add_number(command, "noise_multiplier",
                      "Noise / sensitivity under the stated adjacency; sigma of a discrete gaussian");
  question.add_number(command, "step_epsilon", "Epsilon of one pure, approximate or bounded-range step");
  question.add_number(command, "step_delta", "Delta of one approximate step");
  question.add_number(command, "steps", "How many such steps (default 1)");
  question.add_text(command, "sampling", "none, poisson or allocation (default: poisson if there is a sampling rate)");
  question.add_number(command, "sampling_rate", "Poisson sampling rate of records (default 1)");
  question.add_number(command, "batches", "Allocation: batches in an epoch; a record is in one, drawn at random");
  question.add_number(command, "epochs", "Allocation: how many epochs (default 1), instead of steps");
  question.add_text(command, "adjacency",
                    "add-remove, zero-out, replace or replace-same-label; required with sampling");
  question.add_number(command, "delta", "Asks for epsilon at this delta");
  question.add_number(command, "epsilon", "Asks for delta at this epsilon");
  question.add_text(command, "method",
                    "exact, pld, saddle, rdp, rdp-paper, rdp-paper-tight, zcdp, classical, basic or advanced; "
                    "without it all are shown");
  question.add_number(command, "order", "Asks for the Rényi divergence of this order instead");
  question.add_compose(command);
  command.flag("--batch", options->batch, "Answer one JSON object a line from standard input");
  add_output_options(command, options->output, "Print the answer as JSON");
  add_example(
      command,
      "sotto account --noise-multiplier 1 --sampling-rate 0.01 --adjacency add-remove --steps 10000 --delta 1e-5");
  command.callback([options] { account(*options); });
}

}  // namespace sotto::cli
