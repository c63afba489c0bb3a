#include "ui/server.h"

#include "artifacts/find_runs.h"
#include "artifacts/ledger_snapshot.h"
#include "artifacts/run_summary.h"
#include "base/error.h"
#include "base/files.h"
#include "base/json_number.h"
#include "base/shell_word.h"
#include "methods/catalogue.h"
#include "report/budget_board.h"
#include "report/run_document.h"
#include "serve/status.h"

#include <fmt/format.h>
#include <httplib.h>
#include <openssl/crypto.h>
#include <openssl/rand.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <thread>

namespace sotto::ui {
namespace {

using nlohmann::json;

constexpr const char* kLoopback = "127.0.0.1";
// The names of all runs that somebody compares are one question.
constexpr size_t kLargestQuestion = size_t{1} << 22;
// Each connection has a thread while it is open, and gets little time to say what it wants: those that say nothing must
// not keep the page waiting.
constexpr size_t kConnections = 64;
constexpr time_t kPatienceSeconds = 1;
constexpr const char* kWatched[] = {"config.toml",       "metrics.jsonl", "summary.json", "ledger.sqlite",
                                    "ledger.sqlite-wal", "audit.json",    "attacks",      "embedding.json"};

std::string new_token() {
  std::array<unsigned char, 16> bytes = {};
  if (RAND_bytes(bytes.data(), bytes.size()) != 1) fail_user("the operating system gives no random numbers");
  std::string token;
  for (const unsigned char byte : bytes) token += fmt::format("{:02x}", byte);
  return token;
}

// Changes when a run's files or its state do.
std::string stamp_of(const fs::path& run) {
  std::string stamp = artifacts::to_string(artifacts::state_of(run));
  for (const char* file : kWatched) {
    struct stat status = {};
    if (::stat((run / file).c_str(), &status) != 0) continue;
    stamp += fmt::format(" {}:{}:{}.{}", file, status.st_size, status.st_mtim.tv_sec, status.st_mtim.tv_nsec);
  }
  return stamp;
}

// Seconds since 1970: when the config was written, which is the first thing a run does. Null if that cannot be known.
json started_at(const fs::path& run) {
  struct stat status = {};
  return ::stat((run / "config.toml").c_str(), &status) == 0 ? json(status.st_mtim.tv_sec) : json(nullptr);
}

json summary_figures(const artifacts::RunSummary& summary) {
  const auto largest = [](const auto& spread) { return spread ? json(spread->max) : json(nullptr); };
  return {{"accuracy", number_or_null(summary.evaluation.over(&federation::ClientScore::accuracy).mean)},
          {"proven_epsilon", largest(summary.privacy.declared.proven)},
          {"claimed_epsilon", largest(summary.privacy.declared.claimed)},
          {"basis", settings::word(summary.privacy.basis)}};
}

// Of an unfinished run: the last evaluation.
json last_accuracy(const std::vector<json>& rounds) {
  for (auto line = rounds.rbegin(); line != rounds.rend(); ++line) {
    if (line->contains("evaluation")) return (*line)["evaluation"]["accuracy"]["mean"];
  }
  return nullptr;
}

fs::path checked(const fs::path& root) {
  artifacts::find_runs(root);
  return fs::canonical(root);
}

// The runs that a document is asked of: {"runs": ["a", …], "have": STAMP}.
struct Question {
  std::vector<std::string> runs;
  std::string have;
};

Question question_of(const std::string& body) {
  try {
    const json value = json::parse(body);
    return {value.at("runs").get<std::vector<std::string>>(), value.value("have", "")};
  } catch (const json::exception&) {
    fail_user("the question is not of the form {}", R"({"runs": ["NAME", …], "have": "STAMP"})");
  }
}

std::string what_went_wrong(int status) {
  if (status == 404) return "there is nothing here\n";
  if (status == 413) return fmt::format("a question may have at most {} bytes\n", kLargestQuestion);
  if (status == 414) return "the address is too long\n";
  return "this is no request that the page makes\n";
}

std::vector<privacy::Event> events_of(const fs::path& run) {
  return artifacts::LedgerSnapshot(run)->events();
}

}  // namespace

RunBrowser::RunBrowser(const fs::path& root) : root_(checked(root)), federations_(root_) {}

std::vector<fs::path> RunBrowser::folders_of(const std::vector<std::string>& runs) const {
  const auto known = artifacts::find_runs(root_);  // sorted
  std::vector<fs::path> folders;
  for (const std::string& run : runs) {
    if (!std::binary_search(known.begin(), known.end(), fs::path(run))) fail_user("there is no run {}", run);
    folders.push_back((root_ / run).lexically_normal());
  }
  return folders;
}

json RunBrowser::entry(const std::string& run) {
  const fs::path folder = root_ / run;
  const std::string stamp = stamp_of(folder);
  {
    const std::lock_guard lock(mutex_);
    const auto known = entries_.find(run);
    if (known != entries_.end() && known->second.first == stamp) return known->second.second;
  }
  const artifacts::RunReader reader(folder);
  const config::RunSpec spec = report::spec_of(reader);
  const std::vector<json> rounds = reader.rounds();
  json value = {{"id", run},
                {"name", spec.name},
                {"method", spec.method},
                {"variant", settings::word(spec.variant)},
                {"dataset", spec.data.name},
                {"model", methods::trained_model_name(spec)},
                {"seed", spec.seed},
                {"clients", spec.data.clients},
                {"started", started_at(folder)},
                {"state", artifacts::to_string(artifacts::state_of(folder))},
                {"rounds", spec.rounds},
                {"rounds_done", rounds.size()},
                {"accuracy", last_accuracy(rounds)}};
  const auto summary = reader.summary();
  if (summary) value.update(summary_figures(*summary));
  const std::lock_guard lock(mutex_);
  entries_[run] = {stamp, value};
  return value;
}

json RunBrowser::list() {
  json runs = json::array();
  for (const fs::path& run : artifacts::find_runs(root_)) {
    try {
      runs.push_back(entry(run.string()));
    } catch (const std::exception& error) {
      runs.push_back({{"id", run.string()}, {"state", "unreadable"}, {"problem", error.what()}});
    }
  }
  return {{"root", root_.string()}, {"runs", runs}, {"federations", federations_.list()}};
}

json RunBrowser::document(const std::vector<std::string>& runs) {
  const std::vector<fs::path> folders = folders_of(runs);
  std::vector<report::NamedRun> named;
  for (size_t i = 0; i < runs.size(); ++i) named.push_back({runs[i], folders[i]});
  json document = report::page_document(named, cache_);
  for (size_t i = 0; i < runs.size(); ++i) {
    if (document["runs"][i]["state"] == "finished" || serve::is_server_folder(folders[i])) continue;
    document["runs"][i]["resume"] = fmt::format("sotto run {} --resume", shell_word(folders[i].string()));
  }
  return document;
}

std::string RunBrowser::stamp(const std::vector<std::string>& runs) const {
  std::string all;
  for (const fs::path& folder : folders_of(runs)) all += fmt::format("{}\n{}\n", folder.string(), stamp_of(folder));
  return sha256(all);
}

json RunBrowser::board(const std::string& run, const std::string& like) {
  const std::vector<fs::path> folders = folders_of({run, like});
  const fs::path& folder = folders.front();
  const config::RunSpec spec = report::spec_of(artifacts::RunReader(folder));
  const auto events = events_of(folder);
  return {{"run", run},
          {"like", like},
          {"rows", report::budget_board(spec, events, run == like ? events : events_of(folders.back()), cache_)}};
}

struct UiServer::Implementation {
  RunBrowser& browser;
  std::string token = new_token();
  httplib::Server server = {};
  int port = 0;
  std::thread thread = {};

  // The header of a page that some other site opened would carry that site's name.
  bool is_welcome(const httplib::Request& request) const {
    const std::string given = request.get_param_value("token");
    const std::string host = request.get_header_value("Host");
    const bool here = host == fmt::format("{}:{}", kLoopback, port) || host == fmt::format("localhost:{}", port);
    return here && given.size() == token.size() && CRYPTO_memcmp(given.data(), token.data(), token.size()) == 0;
  }

  // Before the body is read, so that it costs nothing. What would be read without end is refused as well.
  UiAnswer at_the_door(const httplib::Request& request) const {
    if (!is_welcome(request)) return {403, "text/plain", "use the address that `sotto ui` printed\n"};
    if (request.has_header("Transfer-Encoding")) return {.status = 400};
    if (request.get_header_value<uint64_t>("Content-Length") > kLargestQuestion) return {.status = 413};
    return {};
  }

  UiAnswer document(const Question& question) {
    const std::string stamp = browser.stamp(question.runs);
    if (question.have == stamp) return {200, "application/json", "{\"same\":true}"};
    json document = browser.document(question.runs);
    document["stamp"] = stamp;
    return {200, "application/json", report::to_text(document)};
  }

  UiAnswer answer(const httplib::Request& request) {
    try {
      if (request.method == "POST") {
        return request.path == "/api/document" ? document(question_of(request.body)) : UiAnswer{.status = 404};
      }
      if (request.path == "/") return {200, "text/html; charset=utf-8", report::page_html({{"ui", true}})};
      if (request.path == "/api/runs") return {200, "application/json", report::to_text(browser.list())};
      if (request.path == "/api/federation") {
        return {200, "application/json", report::to_text(browser.federation(request.get_param_value("id")))};
      }
      if (request.path == "/api/board") {
        const std::string run = request.get_param_value("run");
        const std::string like = request.has_param("like") ? request.get_param_value("like") : run;
        return {200, "application/json", report::to_text(browser.board(run, like))};
      }
    } catch (const UserError& error) {
      return {422, "text/plain; charset=utf-8", error.what()};
    } catch (const std::exception& error) {
      return {500, "text/plain; charset=utf-8", error.what()};
    }
    return {.status = 404};
  }
};

UiServer::UiServer(RunBrowser& browser, int port) : implementation_(new Implementation{.browser = browser}) {
  Implementation& self = *implementation_;
  self.server.set_default_headers({{"Cache-Control", "no-store"},
                                   {"Referrer-Policy", "no-referrer"},
                                   {"X-Content-Type-Options", "nosniff"},
                                   {"X-Frame-Options", "DENY"},
                                   {"Cross-Origin-Resource-Policy", "same-origin"}});
  // The library's default shares a port with whoever listens there already.
  self.server.set_socket_options([](socket_t) {});
  self.server.new_task_queue = [] { return new httplib::ThreadPool(kConnections); };
  self.server.set_keep_alive_max_count(1);
  self.server.set_keep_alive_timeout(kPatienceSeconds);
  self.server.set_read_timeout(kPatienceSeconds);
  self.server.set_payload_max_length(kLargestQuestion);
  const auto send = [](const UiAnswer& answer, httplib::Response& response) {
    response.status = answer.status;
    if (!answer.body.empty()) response.set_content(answer.body, answer.type);
  };
  self.server.set_pre_routing_handler([&self, send](const httplib::Request& request, httplib::Response& response) {
    const UiAnswer refusal = self.at_the_door(request);
    if (refusal.status == 200) return httplib::Server::HandlerResponse::Unhandled;
    send(refusal, response);
    return httplib::Server::HandlerResponse::Handled;
  });
  const auto handle = [&self, send](const httplib::Request& request, httplib::Response& response) {
    send(self.answer(request), response);
  };
  self.server.Get(".*", handle);
  self.server.Post(".*", handle);
  self.server.set_error_handler([](const httplib::Request&, httplib::Response& response) {
    if (response.body.empty()) response.set_content(what_went_wrong(response.status), "text/plain; charset=utf-8");
  });
  self.port = port == 0                                   ? self.server.bind_to_any_port(kLoopback)
              : self.server.bind_to_port(kLoopback, port) ? port
                                                          : -1;
  if (self.port < 0) fail_user("port {} is in use; choose another with --port, or leave it out", port);
  self.thread = std::thread([&self] { self.server.listen_after_bind(); });
}

UiServer::~UiServer() {
  implementation_->server.stop();
  if (implementation_->thread.joinable()) implementation_->thread.join();
}

std::string UiServer::address() const {
  return fmt::format("http://{}:{}/?token={}", kLoopback, implementation_->port, implementation_->token);
}

}  // namespace sotto::ui
