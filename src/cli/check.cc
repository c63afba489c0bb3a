// sotto check: whether a home could join, or a server start, before either does.
#include "base/error.h"
#include "base/files.h"
#include "base/table.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/federation_source.h"
#include "cli/output.h"
#include "net/certificates.h"
#include "net/key_folders.h"
#include "remote/address.h"
#include "remote/grpc_log.h"
#include "remote/preflight.h"
#include "serve/status.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace sotto::cli {
namespace {

using nlohmann::json;
using remote::Finding;

struct CheckOptions {
  fs::path what;
  std::string server;
  bool insecure = false;
  fs::path folder;
  fs::path certificates;
  std::string listen = "0.0.0.0:7443";
  OutputOptions output;
};

// Room for a round's uploads, and for the model before and after.
int64_t server_bytes(const federation::FederationPlan& plan) {
  return (methods::expected_cohort(plan.setup().spec()) + 3) * remote::broadcast_bytes(plan.setup());
}

std::string server_certificate(const fs::path& folder) {
  const net::KeyPair server = net::read_server(folder);
  net::check_server(server.certificate_pem, server.key_pem, net::read_certificate_file(folder / "authority.pem"));
  return fmt::format("for {}, {}", fmt::join(net::hosts(server.certificate_pem), ", "),
                     remote::validity_text(server.certificate_pem));
}

std::string server_folder(const fs::path& folder, const federation::FederationPlan& plan) {
  if (!serve::is_server_folder(folder)) {
    if (fs::exists(folder)) fail_user("{} is there and is no server's: name another", folder.string());
    return folder.string() + " will be made";
  }
  const json status = serve::server_status(folder);
  if (status["plan"] != plan.hash()) {
    fail_user("{} belongs to another plan; put its config back, or serve from another folder", folder.string());
  }
  if (status["running"].get<bool>()) fail_user("a server is running in {}", folder.string());
  return fmt::format("goes on after round {}", status["rounds_done"].dump());
}

std::vector<Finding> check_server(const CheckOptions& options) {
  std::vector<Finding> all;
  std::optional<federation::FederationPlan> plan;
  all.push_back(remote::finding("config", [&] {
    plan.emplace(load_plan({.config = options.what.string(), .overrides = {}}));
    return fmt::format("plan {}", plan->short_hash());
  }));
  if (!options.insecure) {
    all.push_back(remote::finding("certificate", [&] {
      if (options.certificates.empty()) fail_user("--certs DIR is missing: `sotto certs init` makes it");
      return server_certificate(options.certificates);
    }));
  }
  all.push_back(remote::finding("address", [&] {
    remote::require_free(options.listen);
    return options.listen + " is free";
  }));
  if (plan && !options.folder.empty()) {
    all.push_back(remote::finding("folder", [&] { return server_folder(options.folder, *plan); }));
    all.push_back(remote::finding("disk", [&] { return remote::free_space(options.folder, server_bytes(*plan)); }));
  }
  return all;
}

void check(const CheckOptions& options) {
  remote::silence_grpc();
  const std::vector<Finding> findings =
      fs::is_directory(options.what)
          ? remote::check_home({.home = options.what, .address = options.server, .insecure = options.insecure})
          : check_server(options);
  const auto wrong = std::count_if(findings.begin(), findings.end(), [](const Finding& one) { return !one.ok; });
  if (options.output.json) {
    json list = json::array();
    for (const Finding& one : findings) list.push_back({{"what", one.what}, {"ok", one.ok}, {"detail", one.detail}});
    print_json({{"ok", wrong == 0}, {"checks", std::move(list)}});
  } else {
    Table table({"check", "", "what was found"});
    for (const Finding& one : findings) table.add_row({one.what, one.ok ? "ok" : "not ok", one.detail});
    print_text(table.to_string());
  }
  if (wrong > 0) fail_user("{} of {} checks failed", wrong, findings.size());
}

}  // namespace

void add_check(Command& program) {
  Command command = program.subcommand("check", "Whether a home could join, or a server start, as things are");
  const auto options = std::make_shared<CheckOptions>();
  command.option("WHAT", options->what, "A client's home, or the config that a server would serve").required();
  command.option("--server", options->server, "Home: address and port, instead of the policy's");
  command.flag("--insecure", options->insecure, "Without certificates; only on the loopback interface");
  command.option("--folder", options->folder, "Config: where the server would keep everything");
  command.option("--certs", options->certificates, "Config: authority and server certificate");
  command.option("--listen", options->listen, "Config: address and port").shows_default();
  add_output_options(command, options->output, "Print {ok, checks: [{what, ok, detail}]}");
  add_example(command, "sotto check hospital-1");
  command.callback([options] { check(*options); });
}

}  // namespace sotto::cli
