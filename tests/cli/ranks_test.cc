// One program as several processes: ranks of mpirun, and processes side by side that share a folder.
#include "privacy/ledger.h"
#include "program.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <fstream>
#include <future>
#include <thread>
#include <tuple>
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

// In this process, which starts no other.
std::string output_here(const fs::path& folder, const std::string& arguments) {
  const Elsewhere here(folder);
  return cli::output_of(words_of(arguments));
}

// Several clients at a time write them, in any order.
std::vector<privacy::Event> ledger_rows(const fs::path& run) {
  auto rows = privacy::Ledger(run / "ledger.sqlite", privacy::Ledger::Mode::kRead).events();
  const auto place = [](const privacy::Event& row) { return std::tie(row.round, row.client, row.observer, row.what); };
  std::sort(rows.begin(), rows.end(), [&](const auto& a, const auto& b) { return place(a) < place(b); });
  return rows;
}

// How long nobody has written there.
std::chrono::duration<double> quiet_for(const fs::path& folder) {
  fs::file_time_type last = fs::file_time_type::min();
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) last = std::max(last, entry.last_write_time());
  }
  return fs::file_time_type::clock::now() - last;
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
  const Result result = mpirun("-n 3 sotto run config.toml --out together --json");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(without_times(json::parse(result.out)), without_times(summary("alone"))) << "and nothing but that";
  EXPECT_THAT(result.err, HasSubstr("3 ranks"));
  EXPECT_EQ(result.err.find("local-only on"), result.err.rfind("local-only on")) << "said by one rank";

  const Result shortened = mpirun("-n 2 sotto run config.toml --out together --resume --set rounds=4");
  EXPECT_EQ(shortened.exit_code, 2);
  EXPECT_THAT(shortened.err, HasSubstr("a run can be extended, not shortened"));
  EXPECT_EQ(error_lines(shortened.err), 1) << shortened.err;
  EXPECT_EQ(shortened.err.find("MPI_ABORT"), std::string::npos) << "all ranks end in peace\n" << shortened.err;
}

struct Death {
  std::string method;
  std::string point;
  std::string resumed_by;  // "": one process
  std::string privacy;
};

// Whichever rank dies, whenever, and with however many ranks it goes on.
TEST_F(OverMpi, ADeadRankEndsTheJobAndTheRunGoesOn) {
  const std::string budget = "[privacy]\nepsilon = 3.0\ndelta = 1e-2\n";
  const std::vector<Death> deaths = {
      {"local-only", "rank-1.committed:3", "", ""},
      {"ldp-fedavg", "rank-1.trained:4", "-n 2 sotto ", budget + "adjacency = \"replace\"\n"},
      {"dp-fedavg", "rank-0.trained:4", "",
       budget + "adjacency = \"add-remove\"\nunit = \"client\"\nobserver = \"clients\"\n"}};
  for (const auto& [method, point, resumed_by, privacy] : deaths) {
    write("config.toml", "rounds = 6", "", "[federation]\ncohort = 3\n[method]\nname = \"" + method + "\"\n" + privacy);
    const std::string alone = "alone-" + method;
    output_here(folder_, "run config.toml --quiet --out " + alone);
    const Result result = mpirun("-n 3 sotto run config.toml --out " + method, "SOTTO_KILL_AT=" + point);
    EXPECT_LT(quiet_for(folder_ / method), std::chrono::seconds(20)) << "it ends within seconds";
    EXPECT_NE(result.exit_code, 0);
    EXPECT_THAT(result.err, HasSubstr("signal 9")) << "mpirun says which rank it was";
    EXPECT_THAT(result.err, HasSubstr("this job is being ended; continue with: sotto run " + method + " --resume"));
    EXPECT_EQ(error_lines(result.err), 1) << result.err;
    ASSERT_FALSE(fs::exists(folder_ / method / "summary.json"));
    const std::string arguments = "run config.toml --resume --quiet --out " + method;
    const Result resumed = resumed_by.empty() ? sotto(arguments) : mpirun(resumed_by + arguments);
    ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
    EXPECT_EQ(without_times(summary(alone)), without_times(summary(method))) << method;
    EXPECT_EQ(ledger_rows(folder_ / alone), ledger_rows(folder_ / method)) << method;
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
  const auto expect_refused = [&](const std::string& second, const std::string& reason,
                                  const std::string& program = "sotto") {
    const Result result =
        mpirun("-n 1 sotto run config.toml --out run : -n 1 " + program + " run " + second + " --out run --quiet");
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_THAT(result.err, HasSubstr(fmt::format("rank 1 on {} cannot take part: {}", host.data(), reason)));
    EXPECT_EQ(error_lines(result.err), 1) << result.err;
    EXPECT_EQ(result.out, "");
    EXPECT_FALSE(fs::exists(folder_ / "run"));
  };
  expect_refused("other.toml", "it read another config");
  expect_refused("missing.toml", "there is no config missing.toml");
  expect_refused("config.toml --set data.path=nowhere.csv", "");

  for (const char* file : {"sotto-engine", "libsotto_mpi.so"}) {
    fs::copy_file(fs::path(SOTTO_PROGRAM).parent_path() / file, folder_ / file);
  }
  std::string engine = read_file(folder_ / "sotto-engine");
  const size_t build_id = engine.find(std::string("\3\0\0\0GNU\0", 8)) + 8;
  engine[build_id] = static_cast<char>(engine[build_id] ^ 1);
  std::ofstream(folder_ / "sotto-engine", std::ios::binary) << engine;
  expect_refused("config.toml", "it runs another build of sotto", "./sotto-engine");

  // The same name and the same records, but another file there.
  fs::create_directory(folder_ / "other");
  fs::copy_file(folder_ / "table.schema.json", folder_ / "other" / "table.schema.json");
  write_file_atomically(folder_ / "other" / "table.csv", read_file(folder_ / "table.csv") + "\n");
  const std::string relative = "config.toml --set data.path=table.csv --quiet --out ";
  const Result differs =
      mpirun("-n 1 sotto run " + relative + "run : -n 1 -wdir other sotto run ../" + relative + "../run");
  EXPECT_EQ(differs.exit_code, 2);
  EXPECT_THAT(differs.err, HasSubstr("cannot take part: files that the config names, or its public data, are others"));
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
  const std::string sweep = "sweep config.toml --grid method.name=fedavg,local-only --seeds 2 --json";
  const std::string alone = output_here(folder_, sweep + " --quiet --out alone");
  const Result result = mpirun("-n 2 sotto " + sweep + " --out shared");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  json expected = json::parse(alone), shared = json::parse(result.out);
  for (json* table : {&expected, &shared}) {
    for (json& cell : (*table)["cells"]) cell.erase("runs");
  }
  EXPECT_EQ(shared, expected);
}

TEST_F(OverMpi, CurvesAndShadowsAreSharedAndPrintedOnce) {
  fs::copy_file(folder_ / "table.csv", folder_ / "proxy.csv");
  fs::copy_file(folder_ / "table.schema.json", folder_ / "proxy.schema.json");
  write("pac.toml", "rounds = 3", "",
        "[federation]\nlr = 0.2\n[method]\nname = \"pac-dp\"\ncurve = \"alone/curve.json\"\n"
        "[privacy]\nepsilon = 4\ndelta = 1e-3\nadjacency = \"zero-out\"\n"
        "[fit]\nproxy = \"proxy.csv\"\nbounds = [0.25, 1]\nbudgets = [8, 32]\nrepeats = 1\n");
  const std::string fit = "fit pac.toml --same-data --json --quiet --out ";
  const json curve = json::parse(output_here(folder_, fit + "alone"));
  const Result fitted = mpirun("-n 2 sotto " + fit + "shared");
  ASSERT_EQ(fitted.exit_code, 0) << fitted.err;
  EXPECT_EQ(json::parse(fitted.out), curve);

  output_here(folder_, "run config.toml --quiet --set rounds=1 --set method.name=fedavg --out run");
  const std::string attack = "attack run --attack lira --shadows 4 --records 20 --json --quiet";
  const json alone = json::parse(output_here(folder_, attack));
  fs::remove_all(folder_ / "run" / "attacks");
  const Result attacked = mpirun("-n 2 sotto " + attack);
  ASSERT_EQ(attacked.exit_code, 0) << attacked.err;
  EXPECT_EQ(json::parse(attacked.out), alone);
  for (const auto& entry : fs::directory_iterator(folder_ / "run" / "attacks")) {
    EXPECT_NE(entry.path().extension(), ".parts") << "what was shared is put away";
  }
}

// It measures nothing that is worth comparing; but all is there.
TEST_F(OverMpi, TheBenchmarkSaysHowLongMessagesTake) {
  if (!fs::exists("/usr/share/datasets/fashion-mnist")) GTEST_SKIP() << "Fashion-MNIST is not installed";
  const Result result = mpirun("-n 2 sotto bench simulate --clients 10 --repeats 1 --json --quiet");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const json figures = json::parse(result.out);
  EXPECT_EQ(figures["ranks"], 2);
  for (const char* key : {"rounds_per_s", "rounds_per_s_1_rank", "scaling_ranks", "communication_share", "upload_ms",
                          "latency_us", "bandwidth_mb_per_s"}) {
    ASSERT_TRUE(figures[key].is_number()) << key;
    EXPECT_GT(figures[key], 0.0) << key;
  }
  EXPECT_LT(figures["communication_share"], 1.0);
  EXPECT_NEAR(figures["scaling_ranks"].get<double>(),
              figures["rounds_per_s"].get<double>() / figures["rounds_per_s_1_rank"].get<double>(), 1e-6);
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
  output_here(folder_, run + "--out kept");
  output_here(folder_, run + "--out none --set record.keep_states=none");
  EXPECT_EQ(without_times(summary("kept")), without_times(summary("none")));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_ / "kept" / "state"), {}), 1) << "only the last round's";
  EXPECT_FALSE(fs::exists(folder_ / "none" / "state" / "round_000003.safetensors"));
  output_here(folder_, "run none --resume --quiet");
  EXPECT_EQ(without_times(summary("kept")), without_times(summary("none"))) << "finished is finished";
  output_here(folder_, "export kept --client 0 --out kept.safetensors");
  expect_user_error("export none --client 0 --out none.safetensors", "keeps no clients' states");
}

// A config of another time, and a folder that is not ours (a folder in the place of its lock stands for that).
TEST_F(Program, PruneLeavesRunsThatItCannotUseAndGoesOn) {
  output_here(folder_, "run config.toml --quiet --set rounds=1 --set method.name=local-only --out runs/c");
  for (const char* other : {"a", "b"}) {
    fs::copy(folder_ / "runs" / "c", folder_ / "runs" / other, fs::copy_options::recursive);
  }
  write_file_atomically(folder_ / "runs" / "a" / "config.toml", std::string_view("rounds = \"many\"\n"));
  fs::remove(folder_ / "runs" / "b" / "lock");
  fs::create_directory(folder_ / "runs" / "b" / "lock");
  write_file_atomically(folder_ / "runs" / "c" / "state" / "round_000000.safetensors",
                        std::string_view("of a round before"));
  const json result = json::parse(output_here(folder_, "prune runs --keep last --json"));
  ASSERT_EQ(result["runs"].size(), 3U);
  EXPECT_THAT(result["runs"][0]["left_for"].get<std::string>(), HasSubstr("rounds"));
  EXPECT_THAT(result["runs"][1]["left_for"].get<std::string>(), HasSubstr("cannot write to"));
  EXPECT_TRUE(result["runs"][2]["left_for"].is_null());
  EXPECT_EQ(result["freed_bytes"], 17) << "what is freed is told";
}

TEST_F(Program, PruneRemovesStatesOfFinishedRunsOnly) {
  for (const char* state : {"memory", "disk"}) {
    const std::string run =
        fmt::format("run config.toml --quiet --set method.name=local-only --set federation.state={} ", state);
    output_here(folder_, run + "--set rounds=3 --out runs/finished");
    fs::copy(folder_ / "runs" / "finished", folder_ / "runs" / "stopped", fs::copy_options::recursive);
    fs::remove(folder_ / "runs" / "stopped" / "summary.json");
    const json first = json::parse(output_here(folder_, "prune runs --keep last --json"));
    EXPECT_EQ(first["freed_bytes"], 0) << "there is nothing else";
    output_here(folder_, "export runs/finished --client 0 --out a.safetensors");
    const json result = json::parse(output_here(folder_, "prune runs --json"));
    EXPECT_GT(result["freed_bytes"], 0);
    EXPECT_TRUE(result["runs"][0]["left_for"].is_null());
    EXPECT_EQ(result["runs"][1]["left_for"], "it is not finished");
    output_here(folder_, "export runs/stopped --client 0 --out b.safetensors");
    expect_user_error("export runs/finished --client 0 --out c.safetensors", "keeps no clients' states");
    fs::remove_all(folder_ / "runs");
  }
  expect_user_error("prune " + folder_.string(), "there is no run directory");
}

}  // namespace
}  // namespace sotto
