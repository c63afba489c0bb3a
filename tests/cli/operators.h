// sotto serve, enrol, check, join and status as operators use them: processes, certificates, ports.
#pragma once

#include "program.h"

#include <signal.h>

#include <chrono>
#include <functional>
#include <regex>
#include <string>
#include <thread>

namespace sotto {

inline constexpr auto kPatience = std::chrono::seconds(120);

class Operators : public Program {
 protected:
  ~Operators() override {
    if (server_ > 0) ::kill(server_, SIGTERM);
  }

  std::string file(const std::string& name) const { return read_file(folder_ / name); }

  void write_config(int places = 2, int deadline = 60, const std::string& method = "ldp-fedavg",
                    const std::string& serve = "") {
    write_file_atomically(folder_ / "federation.toml",
                          fmt::format(R"(rounds = 2
[data]
clients = {}
test_fraction = 0.25
schema = "table.schema.json"
[model]
name = "logistic"
[federation]
batch = 50
lr = 0.5
local_epochs = 1
[method]
name = "{}"
[privacy]
epsilon = 4.0
delta = 1e-5
adjacency = "zero-out"
noise = "secure"
[declared]
records = 200
least_records = 100
{}[serve]
quorum = 2
deadline = {}
{})",
                                      places, method, serve.empty() ? "" : "test_records = 60\n", deadline, serve));
  }

  void write_policy(const std::string& home, double epsilon = 4.0, const std::string& methods = "\"ldp-fedavg\"",
                    const std::string& allow = "") {
    fs::create_directories(folder_ / home);
    write_file_atomically(folder_ / home / "policy.toml", fmt::format(R"([data]
name = "custom"
path = "../table.csv"
[budget]
epsilon = {}
delta = 1e-5
adjacency = "zero-out"
[allow]
methods = [{}]
declare = ["records"]
{}[server]
address = "127.0.0.1:{}"
name = "{}"
)",
                                                                      epsilon, methods, allow, port_, home));
  }

  // A server in the background, whose ports are known once this returns.
  void start_server(int linger = 5) {
    run_in_background(
        fmt::format("serve federation.toml --folder server --certs certs --listen 127.0.0.1:0 --enrol 127.0.0.1:0 "
                    "--metrics 127.0.0.1:0 --log json --linger {}",
                    linger),
        "server");
    server_ = std::stoi(file("server.pid"));
    port_ = wait_for(R"("port":(\d+))");
    enrolment_ = wait_for("enrol on port (\\d+)");
    metrics_ = wait_for("metrics on port (\\d+)");
  }

  void run_in_background(const std::string& arguments, const std::string& name) const {
    const std::string command = fmt::format(
        "cd {0} && {{ SOTTO_DATA= timeout --foreground 600 {1} {2} <stdin >{3}.out 2>{3}.err & echo $! >{3}.pid; }}",
        folder_.string(), SOTTO_PROGRAM, arguments, name);
    for (const std::string& made : {std::string("stdin"), name + ".err"}) {
      write_file_atomically(folder_ / made, std::string_view(""));
    }
    ASSERT_EQ(std::system(command.c_str()), 0);
  }

  int wait_for(const std::string& pattern, const std::string& name = "server") const {
    const auto end = std::chrono::steady_clock::now() + kPatience;
    std::smatch match;
    while (std::chrono::steady_clock::now() < end) {
      const std::string text = file(name + ".err");
      if (std::regex_search(text, match, std::regex(pattern))) return match.size() > 1 ? std::stoi(match[1]) : 1;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    ADD_FAILURE() << "no " << pattern << " in:\n" << file(name + ".err");
    return 0;
  }

  // What `sotto status server` says of a client, once that is as expected or patience has ended.
  json member(const std::string& name, const std::function<bool(const json&)>& expected) const {
    const auto end = std::chrono::steady_clock::now() + kPatience;
    while (true) {
      const json status = json::parse(sotto("status server --json").out);
      for (const json& one : status["members"]) {
        if (one["name"] == name && (expected(one) || std::chrono::steady_clock::now() > end)) return one;
      }
      if (std::chrono::steady_clock::now() > end) return nullptr;
    }
  }

  void init() { ASSERT_EQ(sotto("certs init certs --name north --host 127.0.0.1 --days 30").exit_code, 0); }

  std::string token(const std::string& name) const {
    return split(trim(sotto("certs token certs " + name).out), ' ').at(1);
  }

  std::string enrolment(const std::string& home, const std::string& more) const {
    return fmt::format("enrol {0} --server 127.0.0.1:{1} --name {0} {2}", home, enrolment_, more);
  }

  std::string scrape() const {
    const fs::path out = folder_ / "scraped";
    const std::string command = fmt::format(
        "bash -c 'exec 3<>/dev/tcp/127.0.0.1/{}; printf \"GET /metrics HTTP/1.0\\r\\n\\r\\n\" >&3; timeout 10 cat <&3 "
        ">{}'",
        metrics_, out.string());
    EXPECT_EQ(std::system(command.c_str()), 0);
    return read_file(out);
  }

  pid_t server_ = -1;
  int port_ = 0;
  int enrolment_ = 0;
  int metrics_ = 0;
};

}  // namespace sotto
