// sotto join: a federation between machines, from a client's side.
#include "base/error.h"
#include "base/files.h"
#include "base/interrupt.h"
#include "base/json_log.h"
#include "base/log.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/release_table.h"
#include "remote/grpc_log.h"
#include "remote/session.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <iostream>
#include <memory>
#include <string>

namespace sotto::cli {
namespace {

struct JoinOptions {
  fs::path home;
  OutputOptions output;
  std::string server;
  bool insecure = false;
  bool yes = false;
  std::string log = "text";
  double patience = 600;
};

bool asks_owner(const federation::FederationPlan& plan, const member::Prospect& ahead, bool yes) {
  info("{}", describe_plan(plan, ahead.client, ahead.records));
  info("budget      ε = {:.4g}; spent {:.4g}; with this federation {:.4g}", ahead.budget, ahead.spent, ahead.promised);
  if (yes) return true;
  if (::isatty(STDIN_FILENO) == 0) fail_user("nobody is here to agree; read the plan above, and add --yes");
  fmt::print(stderr, "take part? [y/N] ");
  end_on_interrupt("not joined; nothing was sent");
  std::string answer;
  std::getline(std::cin, answer);
  catch_interrupts();
  return answer == "y" || answer == "yes";
}

std::string score_text(const federation::ClientScore& score) {
  return std::isfinite(score.accuracy)
             ? fmt::format("{:.1f} % of {} records right", 100 * score.accuracy, score.records)
             : "no held-out records";
}

// Only that it is over, and what was public anyway: why a round sent nothing may depend on the records, and so does
// every score.
void log_round(const remote::SessionRound& round) {
  log_event("round", {{"round", round.round}, {"sent", round.sent}});
}

void join(const JoinOptions& options) {
  if (options.log == "json") {
    log_json(PlainMessages::kDropped);
    remote::log_grpc_as_json();
  } else {
    remote::silence_grpc();
  }
  catch_interrupts();
  remote::SessionOptions session;
  session.home = options.home;
  session.address = options.server;
  session.insecure = options.insecure;
  session.patience = options.patience;
  session.stop = interrupted;
  session.agree = [&](const auto& plan, const auto& ahead) {
    log_event("plan", {{"plan", plan.hash()}, {"method", plan.setup().spec().method}});
    return asks_owner(plan, ahead, options.yes);
  };
  session.round_done = [](const remote::SessionRound& round) {
    log_round(round);
    info("{}: {}; {}; ε spent {:.4g}", round.evaluation ? "evaluation" : fmt::format("round {}", round.round),
         round.sent          ? "sent"
         : round.why.empty() ? "nothing to send"
                             : "nothing sent, " + round.why,
         score_text(round.score), round.spent_epsilon);
  };
  remote::SessionResult result;
  try {
    result = remote::take_part(session);
  } catch (const remote::Unreachable& problem) {
    if (interrupted()) throw Interrupted("stopped; what is sealed is kept: join again to go on");
    log_event("unreachable", {{"problem", problem.what()}}, "error");
    fail_user("{}", problem.what());
  }
  if (!result.finished) {
    throw Interrupted(interrupted() ? "stopped; what is sealed is kept: join again to go on" : "not joined");
  }
  log_event("finished", {{"participations", result.participations}});
  if (options.output.json) {
    print_json(to_json(result));
  } else {
    print_text(fmt::format("model            {}\nrounds           {}\nε spent          {:.4g}\nkept in          {}\n",
                           score_text(result.score), result.participations, result.spent_epsilon,
                           result.folder.string()));
  }
  remote::mark_reported(result);
}

}  // namespace

void add_join(Command& program) {
  auto options = std::make_shared<JoinOptions>();
  Command command = program.subcommand("join", "Take part in a federation with the records of a home");
  command.option("HOME", options->home, "The home: policy.toml, keys, ledger").required();
  command.option("--server", options->server, "Address and port, instead of the policy's");
  command.flag("--insecure", options->insecure, "Without certificates; only on the loopback interface");
  command.flag("--yes", options->yes, "Agree to whatever the policy allows, without asking");
  command
      .option("--log", options->log,
              "text for people, json for machines: one object a line on standard error, with nothing private in it")
      .one_of({"text", "json"})
      .shows_default();
  command.option("--patience", options->patience, "Seconds to wait for a server that is away").shows_default();
  add_output_options(command, options->output, "Print what the personal model achieves and what was spent");
  add_example(command, "sotto join hospital-1 --yes");
  command.callback([options] { join(*options); });
}

}  // namespace sotto::cli
