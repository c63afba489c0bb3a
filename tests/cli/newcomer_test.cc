// What somebody meets in the first ten minutes: help, words on the screen, clumsy hands.
#include "program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <nlohmann/json.hpp>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <fstream>
#include <thread>

namespace sotto {
namespace {

using ::testing::Not;

class Newcomer : public Program {
 protected:
  // Four clients with budgets that are far apart, and names.
  void write_hospitals() {
    write("hospitals.toml", "rounds = 2", "clients = 4", R"([method]
name = "ldp-fedavg"
[privacy]
epsilon = 4
delta = 1e-5
adjacency = "zero-out"
noise = "secure"
[[clients]]
name = "Basel"
budget = 0.0001
[[clients]]
name = "Bern"
budget = 1
[[clients]]
name = "Chur"
budget = 4
[[clients]]
name = "Genf"
budget = 8
)");
    std::string text = read_file(folder_ / "hospitals.toml");
    text.replace(text.find("clients = 5\n"), 12, "");
    write_file_atomically(folder_ / "hospitals.toml", text);
  }
};

double children_seconds() {
  struct rusage usage = {};
  ::getrusage(RUSAGE_CHILDREN, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

TEST_F(Newcomer, HelpIsThereAtOnceAndFitsATerminal) {
  for (const char* command : {"", "run", "sweep", "attack", "ledger", "ledger show", "data features"}) {
    const double before = children_seconds();
    const Result result = sotto(std::string(command) + " --help");
    EXPECT_LT(children_seconds() - before, 0.1) << command;
    EXPECT_EQ(result.exit_code, 0) << command;
    const std::string shown = result.out.substr(0, result.out.find("Example:"));
    for (const std::string& line : split(shown, '\n')) EXPECT_LE(display_width(line), 80U) << line;
  }
  EXPECT_EQ(sotto("--version").exit_code, 0);
  EXPECT_THAT(sotto("ledger --help").out, Not(HasSubstr("sotto run"))) << "another command's example";
  EXPECT_THAT(sotto("data show --help").out, HasSubstr("Usage: sotto data show"));
}

TEST_F(Newcomer, QuietMeansResultsAndErrorsOnly) {
  const Result run = sotto("run config.toml --set rounds=1 --out run --quiet");
  EXPECT_EQ(run.err, "");
  EXPECT_THAT(run.out, HasSubstr("accuracy  "));
  EXPECT_THAT(run.out, HasSubstr("run directory run"));
  const Result sweep = sotto("sweep config.toml --set rounds=1 --seeds 1 --out sweep --quiet");
  EXPECT_EQ(sweep.err, "");
  EXPECT_THAT(sweep.out, HasSubstr("accuracy.mean %"));
  EXPECT_EQ(sotto("export run -o model.pt --quiet").out, "") << "the result is a file";
}

TEST_F(Newcomer, PlanHasARowPerBudgetWhateverTheirOrder) {
  write_hospitals();
  const json plan = json::parse(sotto("plan hospitals.toml --json").out);
  ASSERT_EQ(plan["budgets"].size(), 4U);
  EXPECT_EQ(plan["budgets"][0]["clients"], json({"Basel"}));
  EXPECT_EQ(plan["budgets"][0]["releases"][0]["verdict"], "noise dominates");
  EXPECT_EQ(plan["budgets"][3]["budget"], 8);
  EXPECT_NE(plan["budgets"][3]["releases"][0]["verdict"], "noise dominates");
  const std::string text = sotto("plan hospitals.toml").out;
  for (const char* name : {"Basel", "Bern", "Chur", "Genf", "dominates"}) EXPECT_THAT(text, HasSubstr(name));
}

TEST_F(Newcomer, PlanKnowsMoreClientsThanItShows) {
  write_hospitals();
  const json plan = json::parse(
      sotto("plan config.toml --json --set data.clients=250 --set data.partition=resample --set "
            "data.records_per_client=20 --set method.name=ldp-fedavg --set privacy.epsilon=4 --set privacy.delta=1e-3 "
            "--set privacy.adjacency=zero-out")
          .out);
  EXPECT_EQ(plan["budgets"][0]["clients"].size(), 250U);
}

TEST_F(Newcomer, ClientsGoByTheirNames) {
  write_hospitals();
  ASSERT_EQ(sotto("run hospitals.toml --set rounds=1 --out run --quiet").exit_code, 0);
  EXPECT_THAT(sotto("ledger show run").out, HasSubstr("Genf"));
  EXPECT_THAT(sotto("export run --csv -").out, HasSubstr("1,3,Genf,"));
  EXPECT_EQ(sotto("report run -o page.html").exit_code, 0);
  EXPECT_THAT(read_file(folder_ / "page.html"), HasSubstr(R"("client_names":["Basel","Bern","Chur","Genf"])"));
}

TEST_F(Newcomer, AbstentionsAreAmongTheResults) {
  write_hospitals();
  ASSERT_EQ(sotto("run hospitals.toml --out run --quiet").exit_code, 0);
  for (const auto& entry : fs::directory_iterator(folder_ / "run/checkpoints")) fs::remove(entry.path());
  fs::remove(folder_ / "run/summary.json");
  const Result again = sotto("run hospitals.toml --out run --resume --quiet");
  EXPECT_THAT(again.out, HasSubstr("abstained     Basel (2×), Bern (2×), Chur (2×), Genf (2×): their budgets were\n"))
      << again.err;
}

TEST_F(Newcomer, WhatCannotBeWrittenIsNotSuccess) {
  ASSERT_EQ(sotto("run config.toml --set rounds=1 --out run --quiet").exit_code, 0);
  if (fs::exists("/dev/full")) {
    for (const char* command : {"report run", "list methods", "ledger show run --json", "--help"}) {
      const int status = std::system(
          fmt::format("cd {} && {} {} >/dev/full 2>stderr", folder_.string(), SOTTO_PROGRAM, command).c_str());
      EXPECT_EQ(WEXITSTATUS(status), 2) << command;
      EXPECT_THAT(read_file(folder_ / "stderr"), HasSubstr("cannot write to standard output")) << command;
    }
  }
  fs::create_directory(folder_ / "run" / "audit.json");
  const Result audit = sotto("audit run --quick --trials 20 --canaries 0");
  EXPECT_EQ(audit.exit_code, 2) << audit.err;
  EXPECT_THAT(audit.out, HasSubstr("audited ε")) << "the result is not lost";
}

TEST_F(Newcomer, ClumsyHandsGetOneLine) {
  ASSERT_EQ(sotto("run config.toml --set rounds=1 --out run --quiet").exit_code, 0);
  expect_user_error("run config.toml --out " + std::string(300, 'x'), "File name too long");
  expect_user_error("predict run --client -1 --test 3", "must be 0 or more, not -1");
  expect_user_error("predict run --test 0", "must be above 0, not 0");
  write_file_atomically(folder_ / "run/summary.json", "{}");
  expect_user_error("report run", "is damaged");
  expect_user_error("ledger verify run", "is damaged");
}

TEST_F(Newcomer, SweepsLookBeforeTheyRun) {
  expect_user_error("sweep config.toml --metric acuracy.mean --out sweep", "did you mean 'accuracy'?");
  expect_user_error("sweep config.toml --metric accuracy --out sweep", "write accuracy.mean");
  EXPECT_FALSE(fs::exists(folder_ / "sweep"));
  write("half.toml", "rounds = 1", "",
        "[method]\nname = \"ldp-fedavg\"\n[privacy]\ndelta = 1e-2\nadjacency = \"replace\"\n");
  const Result whole = sotto("sweep half.toml --grid privacy.epsilon=4 --seeds 1 --out sweep --format markdown");
  EXPECT_EQ(whole.exit_code, 0) << "the grid says what the config leaves out: " << whole.err;
  EXPECT_THAT(whole.out, HasSubstr("| privacy.epsilon | claimed ε |"));
  EXPECT_THAT(whole.out, HasSubstr("|---:|"));
}

TEST_F(Newcomer, AStoppedAuditSaysSo) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::chdir(folder_.c_str());
    const fs::path err = folder_ / "stderr";
    if (std::freopen(err.c_str(), "w", stderr) == nullptr) ::_exit(9);
    ::execl(SOTTO_PROGRAM, "sotto", "audit", "config.toml", "--trials", "1000000", nullptr);
  }
  std::this_thread::sleep_for(std::chrono::seconds(4));
  ::kill(child, SIGINT);
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 1) << status;
  EXPECT_THAT(read_file(folder_ / "stderr"), HasSubstr("sotto: stopped; "));
}

TEST_F(Newcomer, APortInUseIsRefused) {
  const int taken = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int yes = 1;
  ::setsockopt(taken, SOL_SOCKET, SO_REUSEPORT, &yes, sizeof yes);  // as another sotto ui once did
  ASSERT_EQ(::bind(taken, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(::listen(taken, 1), 0);
  socklen_t size = sizeof address;
  ::getsockname(taken, reinterpret_cast<sockaddr*>(&address), &size);
  fs::create_directory(folder_ / "runs");
  const int status = std::system(fmt::format("cd {} && timeout 20 {} ui runs --port {} >/dev/null 2>stderr",
                                             folder_.string(), SOTTO_PROGRAM, ntohs(address.sin_port))
                                     .c_str());
  ::close(taken);
  EXPECT_EQ(WEXITSTATUS(status), 2);
  EXPECT_THAT(read_file(folder_ / "stderr"), HasSubstr("is in use"));
}

}  // namespace
}  // namespace sotto
