// sotto serve: a federation between machines, from the server's side.
#include "artifacts/summary.h"
#include "base/allocator.h"
#include "base/error.h"
#include "base/files.h"
#include "base/interrupt.h"
#include "base/json_log.h"
#include "base/log.h"
#include "base/open_files.h"
#include "base/table.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/config_options.h"
#include "cli/federation_source.h"
#include "cli/output.h"
#include "net/key_folders.h"
#include "remote/address.h"
#include "remote/grpc_log.h"
#include "remote/service.h"
#include "serve/evaluation.h"
#include "serve/metrics.h"
#include "serve/server.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>

namespace sotto::cli {
namespace {

using Clock = std::chrono::steady_clock;

struct ServeOptions {
  run::ConfigSource config;
  OutputOptions output;
  fs::path folder;
  fs::path certificates;
  std::string listen = "0.0.0.0:7443";
  std::string enrolment;
  std::string metrics;
  std::string log = "text";
  bool insecure = false;
  double linger = 60;
};

remote::ServiceOptions service_options(const ServeOptions& options) {
  remote::ServiceOptions service{.address = options.listen, .server = std::nullopt, .authority_pem = ""};
  if (options.insecure) return service;
  if (options.certificates.empty()) {
    fail_user(
        "--certs DIR is missing: `sotto certs init` makes it; --insecure serves this machine alone, without "
        "encryption");
  }
  service.server = net::read_server(options.certificates);
  service.authority_pem = net::read_certificate_file(options.certificates / "authority.pem");
  service.authority_folder = options.certificates;
  return service;
}

void report(const federation::RoundRecord& record, int64_t rounds) {
  if (logs_json()) {
    log_event("round", {{"round", record.round},
                        {"rounds", rounds},
                        {"asked", record.cohort},
                        {"uploads", record.uploads},
                        {"upload_bytes", record.upload_bytes},
                        {"seconds", record.seconds}});
    return;
  }
  info("round {} of {}: {} of {} uploads, {:.2f} MB, {:.1f} s", record.round, rounds, record.uploads, record.cohort,
       static_cast<double>(record.upload_bytes) / 1e6, record.seconds);
}

// A connection is an open file, and there are a few others.
void make_room_for(int64_t clients) {
  constexpr int64_t kOthers = 200;
  const int64_t limit = raise_open_files_limit();
  if (limit < clients + kOthers) {
    warn(
        "this process may open {} files and connections, too few for {} clients at a time: raise it (ulimit -n, "
        "LimitNOFILE)",
        limit, clients);
  }
}

// Clients fetch the last model; whoever does not come is not waited for longer than this.
void linger(serve::Hub& hub, double seconds) {
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  hub.wait_until_all_left([&] { return interrupted() || Clock::now() >= end; });
}

void serve(const ServeOptions& options) {
  if (options.log == "json") {
    log_json(PlainMessages::kKept);
    remote::log_grpc_as_json();
  } else {
    remote::log_failed_connections();
  }
  catch_interrupts();
  share_heaps();
  const federation::FederationPlan plan = load_plan(options.config);
  make_room_for(plan.setup().spec().data.clients);
  const remote::ServiceOptions service = service_options(options);
  if (!fs::exists(options.folder)) remote::require_free(options.listen);  // before anything is made
  serve::Server server(options.folder, plan, interrupted);
  std::optional<remote::EnrolmentService> enrolment;
  if (!options.enrolment.empty()) enrolment.emplace(options.certificates, options.enrolment);
  const config::RunSpec& spec = plan.setup().spec();
  const int64_t wanted = std::max<int64_t>(1, std::min(plan.terms().quorum, spec.data.clients));
  std::optional<serve::Metrics> metrics;
  if (!options.metrics.empty()) metrics.emplace(server.hub(), plan, options.metrics);
  remote::Service network(server.hub(), plan, service);
  info("plan {}: {}, {} rounds, {} places; listening on port {}{}", plan.short_hash(), spec.method, spec.rounds,
       spec.data.clients, network.port(), options.insecure ? ", without encryption" : "");
  log_event("listening", {{"plan", plan.hash()},
                          {"method", spec.method},
                          {"rounds", spec.rounds},
                          {"places", spec.data.clients},
                          {"port", network.port()},
                          {"tls", !options.insecure}});
  if (metrics) info("metrics on port {}", metrics->port());
  if (enrolment) info("clients enrol on port {}", enrolment->port());
  if (server.rounds_done() > 0) info("going on after round {}", server.rounds_done());
  if (server.hub().members() < wanted) info("waiting for {} clients", wanted);
  if (!server.hub().wait_for_members(wanted, interrupted)) throw Interrupted("stopped before the first round");
  while (const auto record = server.next_round()) {
    if (metrics) metrics->round_done(*record);
    report(*record, spec.rounds);
  }
  if (plan.setup().evaluation()) info("asking clients how good the model is");
  const auto evaluation = server.evaluate();
  const artifacts::RunSummary summary = server.finish();
  log_event("finished", {{"rounds", server.rounds_done()}});
  linger(server.hub(), options.linger);
  network.shut_down();
  if (options.output.json) {
    print_json(artifacts::summary_document(summary));
    return;
  }
  Table table({"client", "name", "rounds"});
  for (const serve::MemberStatus& member : server.hub().status()) {
    table.add_row({std::to_string(member.client), member.name, std::to_string(member.participations)});
  }
  print_text(table.to_string() +
             (evaluation ? fmt::format("\nmodel         {}", serve::describe_evaluation(*evaluation)) : "") +
             fmt::format("\nrun directory {}\n", options.folder.string()));
}

}  // namespace

void add_serve(Command& program) {
  auto options = std::make_shared<ServeOptions>();
  Command command = program.subcommand("serve", "Serve a federation to clients on other machines");
  add_config_options(command, options->config);
  command.option("--folder", options->folder, "Where the server keeps everything; one that is there is gone on with")
      .required();
  command.option("--certs", options->certificates, "Authority and server certificate, as `sotto certs init` made them");
  command.option("--listen", options->listen, "Address and port").shows_default();
  command.option("--enrol", options->enrolment,
                 "Also hand out certificates for one-time tokens, on this address and port");
  command.flag("--insecure", options->insecure, "Without certificates; only on the loopback interface");
  command.option("--metrics", options->metrics,
                 "Also tell Prometheus how rounds go, on this address and port, at /metrics");
  command.option("--log", options->log, "text for people, json for machines: one object a line on standard error")
      .one_of({"text", "json"})
      .shows_default();
  command.option("--linger", options->linger, "Seconds to wait for clients that fetch the last model").shows_default();
  add_output_options(command, options->output, "Print summary.json on standard output when all rounds are done");
  add_example(command, "sotto serve federation.toml --folder server --certs certs --listen 0.0.0.0:7443");
  command.callback([options] { serve(*options); });
}

}  // namespace sotto::cli
