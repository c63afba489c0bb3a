// The program as its users meet it: exit codes, one-line errors, JSON, kill and resume.
#include "program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <thread>

namespace sotto {
namespace {

// Rows of the ledger hold times, and their links cover them.
json without_times(json summary) {
  for (const char* key : {"seconds", "samples_per_second", "checksum"}) summary.erase(key);
  summary["privacy"].erase("ledger_head");
  return summary;
}

TEST_F(Program, RunsAndKeepsTheJsonContract) {
  const Result result = sotto("run config.toml --out run --json --set rounds=4");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const json value = json::parse(result.out);
  EXPECT_EQ(value, summary("run"));
  for (const char* key : {"accuracy", "accuracy_global", "rounds", "seconds", "samples_per_second", "privacy",
                          "config_hash", "noise", "dataset", "method", "variant"}) {
    EXPECT_TRUE(value.contains(key)) << key;
  }
  for (const char* key : {"mean", "std", "worst", "per_client"}) EXPECT_TRUE(value["accuracy"].contains(key)) << key;
  EXPECT_EQ(value["accuracy"]["per_client"].size(), 5U);
  EXPECT_EQ(value["rounds"], 4);
  EXPECT_GT(value["accuracy"]["mean"].get<double>(), 0.5);
  EXPECT_TRUE(value["privacy"]["proven_epsilon"].is_null());
  EXPECT_THAT(value["privacy"]["why_unproven"].get<std::string>(), HasSubstr("without noise"));
  EXPECT_EQ(value["noise"], "none");
  EXPECT_EQ(value["privacy"]["basis"], "proven") << "ε = ∞ is true";
  for (const char* file : {"config.toml", "metrics.jsonl", "ledger.sqlite", "summary.json", "partition.png"}) {
    EXPECT_TRUE(fs::exists(folder_ / "run" / file)) << file;
  }
}

TEST_F(Program, LocalOnlyProvesEpsilonZero) {
  const json value =
      json::parse(sotto("run config.toml --out run --json --set method.name=local-only --set rounds=2").out);
  EXPECT_EQ(value["privacy"]["proven_epsilon"]["max"], 0.0);
  EXPECT_EQ(value["privacy"]["basis"], "proven");
  EXPECT_TRUE(value["privacy"]["why_unproven"].is_null());
  EXPECT_TRUE(value["accuracy_global"].is_null());
}

TEST_F(Program, ThreadCountDoesNotChangeTheResult) {
  ASSERT_EQ(sotto("run config.toml --out one --threads 1 --quiet").exit_code, 0);
  ASSERT_EQ(sotto("run config.toml --out two --threads 2 --quiet").exit_code, 0);
  EXPECT_EQ(without_times(summary("one")), without_times(summary("two")));
}

TEST_F(Program, KilledRunsResumeToTheSameResult) {
  write("long.toml", "rounds = 60", "",
        "[federation]\nlocal_epochs = 20\nbatch = 4\n[method]\nname = \"local-only\"\n");
  ASSERT_EQ(sotto("run long.toml --out whole --quiet").exit_code, 0);
  for (const int signal : {SIGKILL, SIGINT}) {
    const std::string name = signal == SIGKILL ? "killed" : "stopped by hand";
    const fs::path err = folder_ / "stderr";
    const pid_t child = ::fork();
    if (child == 0) {
      if (::chdir(folder_.c_str()) != 0 || std::freopen(err.c_str(), "w", stderr) == nullptr) ::_exit(3);
      ::execl(SOTTO_PROGRAM, "sotto", "run", "long.toml", "--out", name.c_str(), "--quiet", nullptr);
      ::_exit(3);
    }
    while (!fs::exists(folder_ / name / "metrics.jsonl")) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    std::this_thread::sleep_for(std::chrono::milliseconds(60));
    ::kill(child, signal);
    int status = 0;
    ::waitpid(child, &status, 0);
    ASSERT_FALSE(fs::exists(folder_ / name / "summary.json")) << "it was to be stopped half-way";
    if (signal == SIGINT) {
      EXPECT_THAT(read_file(err), HasSubstr("continue with: sotto run 'stopped by hand' --resume"));
    }
    const Result resumed = sotto("run long.toml --resume --quiet --out '" + name + "'");
    ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
    EXPECT_EQ(without_times(summary("whole")), without_times(summary(name))) << name;
  }
}

TEST_F(Program, BadInputGetsOneLineAndExitTwo) {
  for (const char* arguments : {"run missing.toml", "frobnicate", "run config.toml --out /proc/nowhere/run"}) {
    const Result refused = sotto(arguments);
    EXPECT_EQ(refused.exit_code, 2) << refused.err;
    EXPECT_EQ(error_lines(refused.err), 1) << refused.err;
    EXPECT_EQ(refused.out, "");
  }
  expect_user_error("run missing.toml", "there is no config missing.toml");
  expect_user_error("run config.toml --set federation.lrr=1", "did you mean 'lr'?");
  expect_user_error("run config.toml --set data.path= --set data.name=fashion-mnits", "did you mean 'fashion-mnist'?");
  expect_user_error("run config.toml --set data.path= --set data.name=cifar100", "cifar100");
  expect_user_error("run config.toml --set data.path=nowhere.csv", "nowhere.csv");
  expect_user_error("run config.toml --set model.name=cnnn", "did you mean 'cnn'?");
  expect_user_error("run config.toml --set model.name=cnn", "cnn");
  expect_user_error("run config.toml --set data.partition=iidd", "did you mean 'iid'?");
  expect_user_error("run config.toml --set data.clients=100000", "clients");
  expect_user_error("run config.toml --out /proc/nowhere/run", "/proc/nowhere");
  expect_user_error("frobnicate", "frobnicate");
  expect_user_error("predict nowhere --test 1", "not a run directory");
  EXPECT_FALSE(fs::exists(folder_ / "runs")) << "a refused run leaves nothing behind";
}

TEST_F(Program, DamagedTablesAreUserErrors) {
  std::ofstream(folder_ / "table.csv") << "a,b,label\n1,2\n";
  expect_user_error("run config.toml", "table.csv");
  std::ofstream(folder_ / "table.csv") << "";
  expect_user_error("run config.toml", "table.csv");
}

TEST_F(Program, RunDirectoriesAreNotOverwrittenOrMixed) {
  ASSERT_EQ(sotto("run config.toml --out run --quiet --set rounds=2").exit_code, 0);
  expect_user_error("run config.toml --out run --set rounds=2", "exists already");
  expect_user_error("run config.toml --out run --resume --set rounds=2 --set seed=9", "different config");
  const Result again = sotto("run run --resume --json");
  EXPECT_EQ(again.exit_code, 0) << again.err;
}

// A file-size limit stands in for a full disk: writes beyond it fail.
TEST_F(Program, AFullDiskIsOneLineAndTheRunCanBeResumed) {
  write("wide.toml", "rounds = 3", "", "[federation]\nstate = \"disk\"\n[method]\nname = \"local-only\"\n");
  ASSERT_EQ(sotto("run wide.toml --out whole --quiet").exit_code, 0);
  for (const int kilobytes : {1, 12}) {
    const std::string name = fmt::format("full{}", kilobytes);
    const std::string limited =
        fmt::format("bash -c 'ulimit -f {}; exec {} run wide.toml --out {} --quiet' 2>{}/stderr", kilobytes,
                    SOTTO_PROGRAM, name, folder_.string());
    const int status = std::system(fmt::format("cd {} && {}", folder_.string(), limited).c_str());
    EXPECT_EQ(WEXITSTATUS(status), 2);
    const std::string error = read_file(folder_ / "stderr");
    EXPECT_EQ(error_lines(error), 1) << error;
    ASSERT_EQ(sotto("run wide.toml --resume --quiet --out " + name).exit_code, 0);
    EXPECT_EQ(without_times(summary("whole")), without_times(summary(name)));
  }
}

TEST_F(Program, PlanWritesNothing) {
  const Result result = sotto("plan config.toml --json");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const json value = json::parse(result.out);
  EXPECT_EQ(value["clients"], 5);
  EXPECT_EQ(value["releases"].size(), 1U);
  EXPECT_FALSE(fs::exists(folder_ / "runs"));
}

TEST_F(Program, SweepsCompareSkipAndSurvive) {
  const std::string command =
      "sweep config.toml --grid method.name=fedavg,local-only --seeds 3 --against method.name=local-only --out sweep "
      "--json "
      "--set rounds=2 --set seed=7";
  const Result result = sotto(command);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const json value = json::parse(result.out);
  ASSERT_EQ(value["cells"].size(), 2U);
  EXPECT_EQ(value["cells"][0]["seeds"], json({7, 8, 9})) << "the config's and those behind it";
  EXPECT_EQ(value["cells"][0]["values"].size(), 3U);
  EXPECT_TRUE(value["cells"][0]["p_value"].is_number());
  EXPECT_TRUE(value["cells"][1]["p_value"].is_null());

  fs::remove(fs::path(folder_ / value["cells"][0]["runs"][1].get<std::string>()) / "summary.json");
  const Result again = sotto(command);
  EXPECT_THAT(again.err, HasSubstr("5 of 6 runs are done already"));
  EXPECT_EQ(json::parse(again.out), value);
}

TEST_F(Program, AGridWithoutValuesIsOneLine) {
  expect_user_error("sweep config.toml --grid 'federation.lr=[]' --out sweep", "the list is empty");
  EXPECT_FALSE(fs::exists(folder_ / "sweep"));
}

TEST_F(Program, AConfigDescribesItsOwnTable) {
  std::string toml = read_file(folder_ / "config.toml");
  toml +=
      "\n[sweep]\nseeds = 2\nagainst = \"alone\"\ngrid = [\"federation.lr=0.01,0.1\"]\nquick = [\"rounds=1\"]\n"
      "quick_grid = [\"federation.lr=0.1\"]\n[[sweep.rows]]\nname = \"together\"\nset = [\"method.name=fedavg\"]\n"
      "[[sweep.rows]]\nname = \"alone\"\nset = [\"method.name=local-only\"]\n";
  write_file_atomically(folder_ / "table.toml", toml);
  const Result result = sotto("sweep table.toml --out table --set rounds=2 --json");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const json cells = json::parse(result.out)["cells"];
  ASSERT_EQ(cells.size(), 4U);
  EXPECT_EQ(cells[2]["row"], "together");
  EXPECT_EQ(cells[2]["settings"]["federation.lr"], "0.1");
  EXPECT_EQ(cells[2]["against"], 3) << "compared with the row of the same point";
  EXPECT_TRUE(cells[3]["against"].is_null());
  EXPECT_TRUE(cells[2]["proven_epsilon"].is_null()) << "FedAvg proves nothing";
  EXPECT_EQ(cells[3]["proven_epsilon"], 0.0) << "and whoever sends nothing needs no proof";

  const json quick = json::parse(sotto("sweep table.toml --quick --metric rounds_to:2 --out quick --json").out);
  ASSERT_EQ(quick["cells"].size(), 2U);
  EXPECT_EQ(quick["cells"][0]["mean"], 2.0) << "an accuracy of two is not reached in one round";
  EXPECT_THAT(sotto("sweep table.toml --quick --out quick").out, HasSubstr("together"));
  expect_user_error("sweep table.toml --against nobody --out table", "names 0 settings");
  expect_user_error("sweep table.toml --quick --metric rounds_to:soon --out quick", "write an accuracy behind it");
}

TEST_F(Program, AnotherDatasetStandsInForOneThatIsNotInstalled) {
  const fs::path heart = folder_ / "home" / "data" / "heart-disease";
  fs::create_directories(heart);
  for (const char* hospital : {"cleveland", "hungarian", "switzerland", "va"}) {
    std::string rows;
    for (int i = 0; i < 12; ++i) {
      rows += fmt::format("{}.0,1.0,2.0,130.0,?,0.0,0.0,150.0,0.0,1.0,2.0,0.0,3.0,{}\n", 40 + i, i % 2);
    }
    write_file_atomically(heart / fmt::format("processed.{}.data", hospital), rows);
  }
  const std::string plan = "plan config.toml --json --set data.name=cifar100 --set 'data.path=\"\"' ";
  const Result result = sotto(plan + "--set 'data.otherwise=[\"pacs\", \"heart-disease\"]'");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("cifar100 is not installed; heart-disease takes its place"));
  EXPECT_EQ(json::parse(result.out)["dataset"], "heart-disease");
  EXPECT_EQ(sotto(plan + "--set 'data.otherwise=[\"pacs\"]'").exit_code, 2) << "neither is here";
}

TEST_F(Program, TrainedModelsPredictAndExport) {
  ASSERT_EQ(sotto("run config.toml --out run --quiet --set rounds=3").exit_code, 0);
  const json answers = json::parse(sotto("predict run --data table.csv --json").out);
  ASSERT_EQ(answers.size(), 300U);
  int right = 0;
  for (const json& answer : answers) right += answer["classes"][0]["class"] == answer["truth"] ? 1 : 0;
  EXPECT_GT(right, 140) << "a hundred by chance";
  EXPECT_EQ(sotto("predict run --client 2 --test 3").exit_code, 0);
  expect_user_error("predict run --client 9 --test 3", "no client 9");
  expect_user_error("predict run", "say what to classify");
  EXPECT_EQ(sotto("export run -o model.safetensors").exit_code, 0);
  EXPECT_EQ(sotto("export run -o model.pt").exit_code, 0);
  EXPECT_TRUE(fs::exists(folder_ / "model.pt"));
  expect_user_error("export run -o model.onnx", ".safetensors");
}

TEST_F(Program, EveryCommandHasHelpWithAnExample) {
  EXPECT_THAT(sotto("--help").out, HasSubstr("sotto run"));
  for (const char* command : {"run",          "plan",         "sweep",          "report",     "predict",
                              "export",       "pretrain",     "bench simulate", "data list",  "data show",
                              "data check",   "data install", "data features",  "certs",      "certs init",
                              "certs server", "certs token",  "certs issue",    "certs show", "enrol"}) {
    const Result result = sotto(std::string(command) + " --help");
    EXPECT_EQ(result.exit_code, 0) << command;
    EXPECT_THAT(result.out, HasSubstr("Example:")) << command;
  }
}

}  // namespace
}  // namespace sotto
