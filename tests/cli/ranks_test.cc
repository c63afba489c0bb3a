// One program as several processes: ranks of mpirun, and processes side by side that share a folder.
#include "program.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <future>
#include <thread>
#include <vector>

namespace sotto {
namespace {

// A private run that never repeats.
constexpr const char* kSecure =
    "[federation]\nbatch = 48\n[method]\nname = \"ldp-fedavg\"\n[privacy]\nepsilon = 3.0\ndelta = 1e-3\nadjacency = "
    "\"replace\"\nnoise = \"secure\"\n";

json without_times(json summary) {
  for (const char* key : {"seconds", "samples_per_second", "checksum"}) summary.erase(key);
  summary["privacy"].erase("ledger_head");
  return summary;
}

class OverMpi : public Program {
 protected:
  void SetUp() override {
    if (std::system("command -v mpirun >/dev/null") != 0) GTEST_SKIP() << "mpirun is not installed";
    if (!fs::exists(fs::path(SOTTO_PROGRAM).parent_path() / "libsotto_mpi.so")) GTEST_SKIP() << "built without MPI";
    write("config.toml", "rounds = 6", "", "[federation]\ncohort = 3\n[method]\nname = \"local-only\"\n");
  }

  std::string start(const std::string& arguments, const std::string& environment = "") const {
    return fmt::format(
        "cd {} && {} SOTTO_DATA= SOTTO_HOME={}/home OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 exec "
        "mpirun "
        "--oversubscribe {} </dev/null >stdout 2>stderr",
        folder_.string(), environment, folder_.string(), arguments);
  }
  // `arguments` as mpirun gets them; "sotto" stands for the program.
  Result mpirun(std::string arguments, const std::string& environment = "") const {
    for (size_t at = 0; (at = arguments.find("sotto ", at)) != std::string::npos; at += 6) {
      arguments.replace(at, 5, SOTTO_PROGRAM);
      at += std::string(SOTTO_PROGRAM).size() - 6;
    }
    const int status = std::system(start(arguments, environment).c_str());
    return {WEXITSTATUS(status), read_file(folder_ / "stdout"), read_file(folder_ / "stderr")};
  }
};

TEST_F(OverMpi, PrintsTheSummaryOfOneProcessOnce) {
  ASSERT_EQ(sotto("run config.toml --out alone --quiet").exit_code, 0);
  for (const int ranks : {2, 3}) {
    const std::string name = fmt::format("ranks{}", ranks);
    const Result result = mpirun(fmt::format("-n {} sotto run config.toml --out {} --json", ranks, name));
    ASSERT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(without_times(json::parse(result.out)), without_times(summary("alone"))) << "and nothing but that";
    EXPECT_THAT(result.err, HasSubstr(fmt::format("{} ranks", ranks)));
    EXPECT_EQ(result.err.find("local-only on"), result.err.rfind("local-only on")) << "said by one rank";
  }
}

// Whenever a rank dies, and with however many ranks it goes on.
TEST_F(OverMpi, ADeadRankEndsTheJobAndTheRunGoesOn) {
  ASSERT_EQ(sotto("run config.toml --out alone --quiet").exit_code, 0);
  for (const auto& [point, how] : std::vector<std::pair<std::string, std::string>>{{"rank-1.trained:4", "-n 2 sotto "},
                                                                                   {"rank-1.committed:3", ""}}) {
    const std::string name = "killed-" + point.substr(7, 4);
    const auto begin = std::chrono::steady_clock::now();
    const Result result = mpirun("-n 2 sotto run config.toml --out " + name, "SOTTO_KILL_AT=" + point);
    EXPECT_NE(result.exit_code, 0);
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::minutes(5));
    EXPECT_THAT(result.err, HasSubstr("signal 9")) << "mpirun says which rank it was";
    EXPECT_THAT(result.err, HasSubstr("continue with: sotto run " + name + " --resume"));
    ASSERT_FALSE(fs::exists(folder_ / name / "summary.json"));
    const std::string arguments = "run config.toml --resume --quiet --out " + name;
    const Result resumed = how.empty() ? sotto(arguments) : mpirun(how + arguments);
    ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
    EXPECT_EQ(without_times(summary("alone")), without_times(summary(name))) << name;
  }
}

TEST_F(OverMpi, CtrlCLeavesARunThatGoesOn) {
  write("long.toml", "rounds = 60", "",
        "[federation]\nlocal_epochs = 20\nbatch = 4\n[method]\nname = \"local-only\"\n");
  ASSERT_EQ(sotto("run long.toml --out alone --quiet").exit_code, 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const std::string command = start(fmt::format("-n 2 {} run long.toml --out stopped --quiet", SOTTO_PROGRAM));
    ::execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
    ::_exit(3);
  }
  while (!fs::exists(folder_ / "stopped" / "metrics.jsonl")) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  std::this_thread::sleep_for(std::chrono::milliseconds(60));
  ::kill(child, SIGINT);
  int status = 0;
  ::waitpid(child, &status, 0);
  ASSERT_FALSE(fs::exists(folder_ / "stopped" / "summary.json")) << "it was to be stopped half-way";
  EXPECT_THAT(read_file(folder_ / "stderr"), HasSubstr("continue with: sotto run stopped --resume"));
  ASSERT_EQ(mpirun("-n 2 sotto run long.toml --resume --quiet --out stopped").exit_code, 0);
  EXPECT_EQ(without_times(summary("alone")), without_times(summary("stopped")));
}

TEST_F(OverMpi, RanksThatDifferAreRefusedByTheirHostsName) {
  write("other.toml", "rounds = 6\nseed = 9", "", "[federation]\ncohort = 3\n[method]\nname = \"local-only\"\n");
  std::array<char, 256> host = {};
  ASSERT_EQ(::gethostname(host.data(), host.size() - 1), 0);
  const auto expect_refused = [&](const std::string& second, const std::string& reason) {
    const Result result =
        mpirun("-n 1 sotto run config.toml --out run : -n 1 sotto run " + second + " --out run --quiet");
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_THAT(result.err, HasSubstr(fmt::format("rank 1 on {} cannot take part: {}", host.data(), reason)));
    EXPECT_EQ(error_lines(result.err), 1) << result.err;
    EXPECT_EQ(result.out, "");
    EXPECT_FALSE(fs::exists(folder_ / "run"));
  };
  expect_refused("other.toml", "it read another config");
  expect_refused("missing.toml", "there is no config missing.toml");
  expect_refused("config.toml --set data.path=nowhere.csv", "");
}

TEST_F(OverMpi, WrongInputIsOneLineOfRankZero) {
  write("secure.toml", "rounds = 1", "", kSecure);
  for (const char* wrong : {"run config.toml --no-such-option", "run config.toml --home there",
                            "sweep secure.toml --private-selection --out chosen"}) {
    const Result result = mpirun(std::string("-n 2 sotto ") + wrong);
    EXPECT_EQ(result.exit_code, 2) << wrong;
    EXPECT_EQ(error_lines(result.err), 1) << result.err;
    EXPECT_EQ(result.out, "");
  }
  EXPECT_FALSE(fs::exists(folder_ / "chosen")) << "no rank selects for itself";
}

TEST_F(OverMpi, SweepsAreSharedAndPrintedOnce) {
  const std::string sweep = "sweep config.toml --grid method.name=fedavg,local-only --seeds 3 --json";
  const Result alone = sotto(sweep + " --out alone");
  ASSERT_EQ(alone.exit_code, 0) << alone.err;
  const Result result = mpirun("-n 2 sotto " + sweep + " --out shared");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  json expected = json::parse(alone.out), shared = json::parse(result.out);
  for (json* table : {&expected, &shared}) {
    for (json& cell : (*table)["cells"]) cell.erase("runs");
  }
  EXPECT_EQ(shared, expected);
}

TEST_F(OverMpi, WithoutTheModuleSaysWhatIsMissing) {
  for (const char* file : {"sotto", "sotto-engine"}) {
    fs::copy_file(fs::path(SOTTO_PROGRAM).parent_path() / file, folder_ / file);
  }
  const std::string as_rank_0 = "OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_RANK=0 ./sotto run config.toml --out run";
  const int status = std::system(fmt::format("cd {} && {} 2>stderr", folder_.string(), as_rank_0).c_str());
  EXPECT_EQ(WEXITSTATUS(status), 2);
  EXPECT_THAT(read_file(folder_ / "stderr"), HasSubstr("this sotto was built without MPI"));
  EXPECT_FALSE(fs::exists(folder_ / "run"));
}

// Its ε covers one selection: of two that begin at the same moment, one has the folder.
TEST_F(Program, PrivateSelectionsSideBySideAreOne) {
  write("secure.toml", "rounds = 1", "", kSecure);
  const auto select = [&](int number) {
    return WEXITSTATUS(
        std::system(fmt::format("cd {} && SOTTO_DATA= SOTTO_HOME={}/home {} sweep secure.toml --private-selection "
                                "--trials 2 --score-noise 0.2 --out chosen >out{} 2>err{}",
                                folder_.string(), folder_.string(), SOTTO_PROGRAM, number, number)
                        .c_str()));
  };
  auto other = std::async(std::launch::async, select, 1);
  const int here = select(0), there = other.get();
  EXPECT_EQ(std::min(here, there), 0);
  EXPECT_EQ(std::max(here, there), 2);
  const int refused = here == 2 ? 0 : 1;
  EXPECT_THAT(read_file(folder_ / fmt::format("err{}", refused)), HasSubstr("chosen exists already"));
  EXPECT_TRUE(fs::exists(folder_ / "chosen" / "selection.json"));
}

// As tasks of an array do: the same command several times, at the same time.
TEST_F(Program, SweepsSideBySideShareTheirRuns) {
  write("slow.toml", "rounds = 20", "", "[federation]\nlocal_epochs = 10\nbatch = 4\n");
  const auto task = [&](int number) {
    return WEXITSTATUS(
        std::system(fmt::format("cd {} && SOTTO_DATA= SOTTO_HOME={}/home {} sweep slow.toml --grid "
                                "federation.lr=0.1,0.2,0.3 --seeds 2 --jobs 1 --out sweep >out{} 2>err{}",
                                folder_.string(), folder_.string(), SOTTO_PROGRAM, number, number)
                        .c_str()));
  };
  std::vector<std::future<int>> tasks;
  for (int i = 0; i < 3; ++i) tasks.push_back(std::async(std::launch::async, task, i));
  int64_t left_to_others = 0, tables = 0;
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(tasks[static_cast<size_t>(i)].get(), 0) << read_file(folder_ / fmt::format("err{}", i));
    const std::string err = read_file(folder_ / fmt::format("err{}", i));
    EXPECT_EQ(err.find("failed"), std::string::npos) << err;
    left_to_others += err.find("other processes' work") != std::string::npos ? 1 : 0;
    tables += read_file(folder_ / fmt::format("out{}", i)).empty() ? 0 : 1;
  }
  EXPECT_EQ(left_to_others + tables, 3);
  EXPECT_GE(tables, 1) << "whoever is last has the whole table";
  const json table = json::parse(read_file(folder_ / "sweep" / "sweep.json"));
  for (const json& cell : table["cells"]) EXPECT_EQ(cell["values"].size(), 2U);
}

TEST_F(Program, KeepsNoStatesOfFinishedRunsIfAskedTo) {
  const std::string run = "run config.toml --quiet --set rounds=3 --set method.name=local-only ";
  ASSERT_EQ(sotto(run + "--out kept").exit_code, 0);
  ASSERT_EQ(sotto(run + "--out none --set record.keep_states=none").exit_code, 0);
  EXPECT_EQ(without_times(summary("kept")), without_times(summary("none")));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_ / "kept" / "state"), {}), 1) << "only the last round's";
  EXPECT_FALSE(fs::exists(folder_ / "none" / "state" / "round_000003.safetensors"));
  const Result again = sotto("run none --resume --quiet");
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_EQ(without_times(summary("kept")), without_times(summary("none"))) << "finished is finished";
  EXPECT_EQ(sotto("export kept --client 0 --out kept.safetensors").exit_code, 0);
  expect_user_error("export none --client 0 --out none.safetensors", "keeps no clients' states");
}

TEST_F(Program, PruneRemovesStatesOfFinishedRunsOnly) {
  for (const char* state : {"memory", "disk"}) {
    const std::string run =
        fmt::format("run config.toml --quiet --set method.name=local-only --set federation.state={} ", state);
    ASSERT_EQ(sotto(run + "--set rounds=3 --out runs/finished").exit_code, 0);
    ASSERT_EQ(sotto(run + "--set rounds=3 --out runs/stopped").exit_code, 0);
    fs::remove(folder_ / "runs" / "stopped" / "summary.json");
    const json first = json::parse(sotto("prune runs --keep last --json").out);
    EXPECT_EQ(first["freed_bytes"], 0) << "there is nothing else";
    EXPECT_EQ(sotto("export runs/finished --client 0 --out a.safetensors").exit_code, 0);
    const json result = json::parse(sotto("prune runs --json").out);
    EXPECT_GT(result["freed_bytes"], 0);
    EXPECT_TRUE(result["runs"][0]["left_for"].is_null());
    EXPECT_EQ(result["runs"][1]["left_for"], "it is not finished");
    EXPECT_EQ(sotto("export runs/stopped --client 0 --out b.safetensors").exit_code, 0);
    expect_user_error("export runs/finished --client 0 --out c.safetensors", "keeps no clients' states");
    fs::remove_all(folder_ / "runs");
  }
  expect_user_error("prune " + folder_.string(), "there is no run directory");
}

}  // namespace
}  // namespace sotto
