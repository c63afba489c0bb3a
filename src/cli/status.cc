// sotto status: how a federation stands, from its server's folder or from a client's home.
#include "member/status.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/files.h"
#include "base/progress.h"
#include "base/table.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "serve/evaluation.h"
#include "serve/status.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

namespace sotto::cli {
namespace {

using nlohmann::json;

constexpr size_t kShortHash = 16;

struct StatusOptions {
  fs::path folder;
  OutputOptions output;
};

std::string short_hash(const json& value) {
  return value.get<std::string>().substr(0, kShortHash);
}

std::string epsilon_text(const json& value) {
  return value.is_null() ? "∞" : fmt::format("{:.4g}", value.get<double>());
}

std::string state_text(const json& status) {
  if (status["finished"].get<bool>()) return "all rounds are done";
  return status["running"].get<bool>() ? "running" : "not running";
}

std::string heard_text(const json& time) {
  if (time.is_null()) return "–";
  return format_duration(static_cast<double>(std::max<int64_t>(0, seconds_now() - time.get<int64_t>()))) + " ago";
}

std::string describe_server(const json& status) {
  std::string text = fmt::format("server      {}, {}\nplan        {}\nrounds      {} of {} done\n",
                                 status["method"].get<std::string>(), state_text(status), short_hash(status["plan"]),
                                 status["rounds_done"].dump(), status["rounds"].dump());
  if (const json& open = status["open_round"]; !open.is_null()) {
    const bool evaluation = open["round"] > status["rounds"];
    text += fmt::format("open        {}: {} of {} have reported\n",
                        evaluation ? "evaluation" : "round " + open["round"].dump(), open["reported"].dump(),
                        open["asked"].dump());
  }
  const auto connected = std::count_if(status["members"].begin(), status["members"].end(),
                                       [](const json& member) { return member["connected"].get<bool>(); });
  text +=
      fmt::format("clients     {} of {} places taken, {} connected\nuploads     {:.1f} kB\n", status["members"].size(),
                  status["places"].dump(), connected, status["upload_bytes"].get<double>() / 1e3);
  if (const json& epsilon = status["epsilon"]; !epsilon.is_null()) {
    text += fmt::format("ε           {} spent of {} promised, at δ = {}\n", epsilon_text(epsilon["spent"]),
                        epsilon_text(epsilon["promised"]), epsilon["delta"].dump());
  } else {
    text += "ε           ∞: no privacy is promised\n";
  }
  if (!status["evaluation"].is_null()) {
    text += fmt::format("model       {}\n", serve::describe_evaluation(status["evaluation"]));
  }
  if (status["members"].empty()) return text;
  Table table({"client", "name", "uploads", "last round", "heard of", ""});
  for (const json& member : status["members"]) {
    table.add_row({member["client"].dump(), member["name"], member["uploads"].dump(), member["last_round"].dump(),
                   heard_text(member["heard"]), member["revoked"].get<bool>() ? "revoked" : ""});
  }
  return text + "\n" + table.to_string();
}

std::string describe_home(const json& status) {
  const json& budget = status["budget"];
  std::string text = fmt::format(
      "home        {}\nserver      {}\nbudget      ε = {} at δ = {}\nspent       {}\nleft        {}\n",
      status["name"].get<std::string>(), status["server"].get<std::string>(), epsilon_text(budget["epsilon"]),
      budget["delta"].dump(), epsilon_text(budget["spent"]), epsilon_text(budget["left"]));
  if (status["federations"].empty()) return text + "no federation was joined\n";
  Table table({"plan", "method", "rounds", "taken part in", "at most", "last round", "outbox"});
  for (const json& one : status["federations"]) {
    const json& outbox = one["outbox"];
    table.add_row(
        {short_hash(one["plan"]), one["method"], one["rounds"].dump(), one["participations"].dump(),
         one["most_participations"].dump(), one["last_round"].dump(),
         outbox.is_null() ? "–" : fmt::format("round {}, {} bytes", outbox["round"].dump(), outbox["bytes"].dump())});
  }
  return text + "\n" + table.to_string();
}

void show_status(const StatusOptions& options) {
  if (!fs::is_directory(options.folder)) fail_user("there is no folder {}", options.folder.string());
  const bool is_server = serve::is_server_folder(options.folder);
  if (!is_server && !fs::exists(options.folder / "policy.toml")) {
    fail_user("{} is neither the folder of a server (server.sqlite) nor a client's home (policy.toml)",
              options.folder.string());
  }
  const json status = is_server ? serve::server_status(options.folder) : member::home_status(options.folder);
  if (options.output.json) return print_json(status);
  print_text(is_server ? describe_server(status) : describe_home(status));
}

}  // namespace

void add_status(Command& program) {
  Command command = program.subcommand("status", "How a federation stands: at its server, or at a client's home");
  const auto options = std::make_shared<StatusOptions>();
  command.option("FOLDER", options->folder, "The --folder of sotto serve, or a home").required();
  add_output_options(command, options->output, "Print it as one JSON object");
  add_example(command, "sotto status server");
  command.callback([options] { show_status(*options); });
}

}  // namespace sotto::cli
