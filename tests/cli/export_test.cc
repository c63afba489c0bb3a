// Runs in the formats of other programs: CSV tables, and TensorBoard's event files.
#include "../support/event_reader.h"
#include "io/csv.h"
#include "program.h"

#include <chrono>
#include <cmath>
#include <csignal>
#include <map>
#include <thread>

namespace sotto {
namespace {

using Rows = std::vector<std::map<std::string, std::string>>;

class Export : public Program {
 protected:
  void run_private(const std::string& out, const std::string& more = "") {
    write("private.toml", "rounds = 4", "",
          "[federation]\nbatch = 16\neval_every = 2\ncohort = 3\n[method]\nname = \"ldp-fedavg\"\n"
          "[privacy]\nepsilon = 3.0\ndelta = 1e-3\nadjacency = \"replace\"\n" +
              more);
    const Result result = sotto("run private.toml --quiet --out " + out);
    ASSERT_EQ(result.exit_code, 0) << result.err;
  }

  std::vector<json> metrics(const std::string& run) const {
    std::vector<json> lines;
    for (const std::string& line : split(read_file(folder_ / run / "metrics.jsonl"), '\n')) {
      if (!line.empty()) lines.push_back(json::parse(line));
    }
    return lines;
  }

  static Rows rows_of(const std::string& text) {
    const auto cells = io::parse_csv(text, "the table");
    Rows rows;
    for (size_t i = 1; i < cells.size(); ++i) {
      rows.emplace_back();
      for (size_t j = 0; j < cells[i].size(); ++j) rows.back()[cells[0][j]] = cells[i][j];
    }
    return rows;
  }

  Rows table(const std::string& arguments) const {
    const Result result = sotto("export " + arguments + " --csv -");
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return rows_of(result.out);
  }

  fs::path only_file_in(const std::string& folder) const {
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(folder_ / folder)) files.push_back(entry.path());
    EXPECT_EQ(files.size(), 1U);
    return files.at(0);
  }

  std::vector<ReadEvent> events_in(const std::string& folder) const {
    return read_events(read_file(only_file_in(folder)));
  }

  void expect_same_as_metrics(const std::vector<ReadEvent>& events, const std::string& run) const {
    const std::vector<json> lines = metrics(run);
    ASSERT_EQ(events.size(), lines.size() + 1);
    EXPECT_EQ(events[0].file_version, "brain.Event:2");
    double before = events[0].wall_time;
    for (size_t i = 0; i < lines.size(); ++i) {
      const json& line = lines[i];
      const ReadEvent& event = events[i + 1];
      EXPECT_EQ(event.step, line["round"].get<int64_t>());
      EXPECT_EQ(event.scalars.at("loss/train"), line["train_loss"].get<float>());
      EXPECT_EQ(event.scalars.at("round/seconds"), line["seconds"].get<float>());
      EXPECT_NEAR(event.wall_time - before, line["seconds"].get<double>() + line["evaluation_seconds"].get<double>(),
                  1e-5);
      before = event.wall_time;
      EXPECT_EQ(event.scalars.contains("accuracy/mean"), line.contains("evaluation"));
      if (!line.contains("evaluation")) continue;
      const json& accuracy = line["evaluation"]["accuracy"];
      EXPECT_EQ(event.scalars.at("accuracy/mean"), accuracy["mean"].get<float>());
      EXPECT_EQ(event.scalars.at("accuracy/worst"), accuracy["worst"].get<float>());
      EXPECT_EQ(event.scalars.at("accuracy/global"), line["evaluation"]["accuracy_global"].get<float>());
      EXPECT_EQ(event.histograms.at("accuracy/clients").num, static_cast<double>(accuracy["per_client"].size()));
    }
  }
};

TEST_F(Export, EventFilesHoldTheMetricsAndTheSpending) {
  run_private("run");
  const Result result = sotto("export run --tensorboard tb/run --json --per-client");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(json::parse(result.out)["rounds"], 4);
  const auto events = events_in("tb/run");
  expect_same_as_metrics(events, "run");
  const json privacy = summary("run")["privacy"];
  EXPECT_EQ(events.back().scalars.at("epsilon/proven"), privacy["proven_epsilon"]["max"].get<float>());
  EXPECT_EQ(events.back().scalars.at("epsilon/claimed"), privacy["claimed_epsilon"]["max"].get<float>());
  EXPECT_GT(events[1].scalars.at("epsilon/proven"), 0);
  EXPECT_LT(events[1].scalars.at("epsilon/proven"), events.back().scalars.at("epsilon/proven"));
  for (const auto& [client, value] : summary("run")["accuracy"]["per_client"].items()) {
    EXPECT_EQ(events.back().scalars.at("accuracy_of_client/" + client), value.get<float>());
  }
}

TEST_F(Export, WithoutAGuaranteeThereIsNoEpsilonToDraw) {
  ASSERT_EQ(sotto("run config.toml --quiet --out run --set rounds=2").exit_code, 0);
  ASSERT_EQ(sotto("export run --tensorboard tb").exit_code, 0);
  for (const ReadEvent& event : events_in("tb")) {
    EXPECT_FALSE(event.scalars.contains("epsilon/proven"));
    EXPECT_FALSE(event.scalars.contains("accuracy_of_client/0"));
  }
}

TEST_F(Export, AnotherExportGoesOnWhereTheFirstLeftOff) {
  run_private("run");
  ASSERT_EQ(sotto("export run --tensorboard tb").exit_code, 0);
  const fs::path file = only_file_in("tb");
  const std::string whole = read_file(file);
  for (const size_t kept : {size_t{0}, size_t{5}, whole.size() / 2, whole.size()}) {
    write_file_atomically(file, whole.substr(0, kept));
    ASSERT_EQ(sotto("export run --tensorboard tb").exit_code, 0);
    EXPECT_EQ(read_file(file), whole) << "cut off after " << kept << " bytes";
  }
  write_file_atomically(file, "something else");
  ASSERT_EQ(sotto("export run --tensorboard tb").exit_code, 0);
  EXPECT_EQ(read_file(file), whole);
}

TEST_F(Export, TwoRunsDoNotShareAFolderOfEvents) {
  ASSERT_EQ(sotto("run config.toml --quiet --out one --set rounds=1").exit_code, 0);
  ASSERT_EQ(sotto("run config.toml --quiet --out two --set rounds=2").exit_code, 0);
  ASSERT_EQ(sotto("export one --tensorboard tb").exit_code, 0);
  expect_user_error("export two --tensorboard tb", "events of another run");
}

TEST_F(Export, FollowsARunUntilItIsFinished) {
  write("long.toml", "rounds = 40", "", "[federation]\nlocal_epochs = 20\nbatch = 4\n");
  const pid_t run = ::fork();
  if (run == 0) {
    if (::chdir(folder_.c_str()) != 0) ::_exit(3);
    ::execl(SOTTO_PROGRAM, "sotto", "run", "long.toml", "--out", "live", "--quiet", nullptr);
    ::_exit(3);
  }
  while (!fs::exists(folder_ / "live" / "config.toml")) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  const pid_t follower = ::fork();
  if (follower == 0) {
    if (::chdir(folder_.c_str()) != 0) ::_exit(3);
    ::execl(SOTTO_PROGRAM, "sotto", "export", "live", "--tensorboard", "tb", "--follow", "--quiet", nullptr);
    ::_exit(3);
  }
  size_t seen_on_the_way = 0;
  while (!fs::exists(folder_ / "live" / "summary.json")) {
    if (fs::exists(folder_ / "tb") && !fs::is_empty(folder_ / "tb")) {
      const auto file = fs::directory_iterator(folder_ / "tb")->path();
      if (file.string().find(".tmp") == std::string::npos) {
        seen_on_the_way = std::max(seen_on_the_way, read_events(read_file(file)).size());
      }
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  int status = 0;
  ::waitpid(run, &status, 0);
  ASSERT_EQ(WEXITSTATUS(status), 0);
  ::waitpid(follower, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_GT(seen_on_the_way, 1U) << "events came while the run went on";
  expect_same_as_metrics(events_in("tb"), "live");
}

TEST_F(Export, AFollowerStopsWhenAskedTo) {
  ASSERT_EQ(sotto("run config.toml --quiet --out run --set rounds=2").exit_code, 0);
  fs::remove(folder_ / "run" / "summary.json");
  const pid_t follower = ::fork();
  if (follower == 0) {
    if (::chdir(folder_.c_str()) != 0) ::_exit(3);
    ::execl(SOTTO_PROGRAM, "sotto", "export", "run", "--tensorboard", "tb", "--follow", "--quiet", nullptr);
    ::_exit(3);
  }
  while (!fs::exists(folder_ / "tb") || fs::is_empty(folder_ / "tb")) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  ::kill(follower, SIGINT);
  int status = 0;
  ::waitpid(follower, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 1);
  EXPECT_EQ(events_in("tb").size(), 3U);
}

TEST_F(Export, TheTableOfClientsHasARowPerEvaluatedRoundAndClient) {
  run_private("run");
  const Rows rows = table("run");
  ASSERT_EQ(rows.size(), 2U * 5U);
  const std::vector<json> lines = metrics("run");
  for (const auto& row : rows) {
    const json& line = lines.at(std::stoul(row.at("round")) - 1);
    const json& score = line["evaluation"]["accuracy"]["per_client"][row.at("client")];
    EXPECT_EQ(std::stod(row.at("accuracy")), score.get<double>()) << "to the last digit";
  }
  const json ledger = json::parse(sotto("ledger show run --json").out);
  for (size_t client = 0; client < 5; ++client) {
    const auto& row = rows.at(5 + client);
    EXPECT_EQ(row.at("client"), std::to_string(client));
    EXPECT_EQ(row.at("round"), "4");
    EXPECT_EQ(std::stod(row.at("proven_epsilon")), ledger["clients"][client]["server"]["proven_epsilon"].get<double>());
    EXPECT_LE(std::stod(rows.at(client).at("proven_epsilon")), std::stod(row.at("proven_epsilon")));
  }
}

TEST_F(Export, TheTableOfRoundsLeavesBlankWhatIsNotKnown) {
  run_private("run");
  const Rows rows = table("run --table rounds");
  ASSERT_EQ(rows.size(), 4U);
  EXPECT_EQ(rows[0].at("accuracy_mean"), "");
  EXPECT_EQ(std::stod(rows[3].at("accuracy_mean")), summary("run")["accuracy"]["mean"].get<double>());
  EXPECT_EQ(std::stod(rows[3].at("proven_epsilon")), summary("run")["privacy"]["proven_epsilon"]["max"].get<double>());
  EXPECT_EQ(rows[0].at("cohort"), "3");
  EXPECT_EQ(rows[0].at("diverged"), "0");

  ASSERT_EQ(sotto("run config.toml --quiet --out clear --set rounds=1").exit_code, 0);
  EXPECT_EQ(table("clear --table rounds")[0].at("proven_epsilon"), "inf");
}

TEST_F(Export, TheTableOfTheLedgerHasEveryReleaseAndQuotesWhatItMust) {
  run_private("run");
  const Rows rows = table("run --table ledger");
  EXPECT_EQ(rows.size(), 12U) << "three clients in four rounds";
  for (const auto& row : rows) {
    EXPECT_EQ(row.at("mechanism"), "gaussian");
    EXPECT_GT(std::stod(row.at("noise")), 0);
    EXPECT_TRUE(json::accept(row.at("parameters"))) << "commas and quotes came through: " << row.at("parameters");
  }
  EXPECT_THAT(sotto("export run --table ledger --csv -").out, HasSubstr("\"\"")) << "something was there to quote";
}

TEST_F(Export, TablesAreFilesToo) {
  run_private("run");
  const Result result = sotto("export run --csv clients.csv --json");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(json::parse(result.out)["rows"], 10);
  EXPECT_EQ(read_file(folder_ / "clients.csv"), sotto("export run --csv -").out);
}

TEST_F(Export, AnUnfinishedRunHasTablesOfWhatThereIs) {
  run_private("run");
  fs::remove(folder_ / "run" / "summary.json");
  const std::string text = read_file(folder_ / "run" / "metrics.jsonl");
  write_file_atomically(folder_ / "run" / "metrics.jsonl", text.substr(0, text.find('\n', text.find('\n') + 1) + 1));
  EXPECT_EQ(table("run").size(), 5U) << "two rounds, one of them evaluated";
  write_file_atomically(folder_ / "run" / "metrics.jsonl", "");
  EXPECT_EQ(table("run").size(), 0U);
}

// A client's own model is handed on as it is: what is known of it must be said.
TEST_F(Export, AModelThatWasFittedWithoutNoiseIsNotPrivate) {
  write("own.toml", "rounds = 1", "",
        "personal = [\"head.\"]\n[federation]\nbatch = 16\n[privacy]\nepsilon = 3.0\ndelta = 1e-3\nadjacency = "
        "\"replace\"\nunproven = [\"model\"]\n");
  const auto run = [&](const std::string& method) {
    fs::remove_all(folder_ / "run");
    const Result result = sotto("run own.toml --quiet --out run --set model.name=mlp --set method.name=" + method);
    ASSERT_EQ(result.exit_code, 0) << result.err;
  };
  const std::string without = "without noise and must not leave it";
  for (const std::string method : {"local-only", "fedavg", "nbafl", "full-dp --set method.variant=paper"}) {
    run(method);
    const Result exported = sotto("export run --client 1 -o own.pt --json");
    ASSERT_EQ(exported.exit_code, 0) << exported.err;
    const json value = json::parse(exported.out);
    ASSERT_TRUE(value["not_private"].is_string()) << method;
    EXPECT_THAT(value["not_private"].get<std::string>(), HasSubstr("the model of client 1 is not private"));
    EXPECT_THAT(value["not_private"].get<std::string>(), HasSubstr(without));
    EXPECT_THAT(sotto("export run --client 1 -o own.pt").err, HasSubstr(without)) << method;
    const Result predicted = sotto("predict run --client 1 --test 2 --json");
    EXPECT_TRUE(json::parse(predicted.out).is_array()) << predicted.err;
    EXPECT_THAT(predicted.err, HasSubstr(without)) << method;
  }
  for (const std::string method : {"ldp-fedavg", "full-dp"}) {
    run(method);
    const Result exported = sotto("export run --client 1 -o own.pt --json");
    ASSERT_EQ(exported.exit_code, 0) << exported.err;
    EXPECT_EQ(json::parse(exported.out).at("not_private"), nullptr) << method;
    EXPECT_EQ(exported.err.find("not private"), std::string::npos) << exported.err;
    EXPECT_EQ(sotto("predict run --client 1 --test 2").err.find("not private"), std::string::npos) << method;
  }
}

TEST_F(Export, AClientWithoutAModelOfItsOwnHandsOnTheGlobalOne) {
  ASSERT_EQ(sotto("run config.toml --quiet --out run --set rounds=1").exit_code, 0);
  for (const std::string client : {"", " --client 1"}) {
    const Result exported = sotto("export run -o model.pt --json" + client);
    ASSERT_EQ(exported.exit_code, 0) << exported.err;
    EXPECT_EQ(json::parse(exported.out).at("not_private"), nullptr);
    EXPECT_EQ(exported.err.find("not private"), std::string::npos) << exported.err;
  }
}

TEST_F(Export, WhatToWriteMustBeSaid) {
  ASSERT_EQ(sotto("run config.toml --quiet --out run --set rounds=1").exit_code, 0);
  EXPECT_EQ(sotto("export run").exit_code, 2);
  EXPECT_EQ(sotto("export run -o model.pt --csv both.csv").exit_code, 2) << "one at a time";
  EXPECT_FALSE(fs::exists(folder_ / "both.csv"));
  expect_user_error("export nowhere --csv -", "not a run directory");
  expect_user_error("export nowhere --tensorboard tb", "not a run directory");
  expect_user_error("export run --csv - --follow", "belong to --tensorboard");
  expect_user_error("export run --csv - --table epochs", "epochs");
  expect_user_error("export run --csv /proc/nowhere/table.csv", "/proc/nowhere");
  expect_user_error("export run --tensorboard /proc/nowhere", "/proc/nowhere");
}

}  // namespace
}  // namespace sotto
