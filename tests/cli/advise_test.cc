// sotto advise as its users meet it: it answers without the clients' records.
#include "program.h"

namespace sotto {
namespace {

class Advise : public Program {
 protected:
  Advise() {
    // Public data of another kind of client, in six clusters; not the table.
    RandomStream stream(2, "proxy");
    std::string rows = "a,b,c,label\n";
    for (int i = 0; i < 400; ++i) {
      const int label = i % 3;
      rows += fmt::format("{:.4f},{:.4f},{:.4f},{}\n", stream.normal() + (label == 0 ? 3 : 0),
                          stream.normal() + (label == 1 ? 3 : 0), stream.normal(), label);
    }
    write_file_atomically(folder_ / "proxy.csv", rows);
    write_file_atomically(folder_ / "proxy.schema.json", std::string_view(kSchema));
    write_config(4);
  }

  void write_config(double epsilon) {
    write("config.toml", "rounds = 3", "",
          fmt::format("[method]\nname = \"ldp-fedavg\"\n[privacy]\nepsilon = {}\ndelta = 1e-3\nadjacency = "
                      "\"zero-out\"\n[federation]\nlr = 0.5\n",
                      epsilon));
  }

  json advise(const std::string& more) const {
    const Result result = sotto("advise config.toml --proxy proxy.csv --json " + more);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return result.exit_code == 0 ? json::parse(result.out) : json();
  }
};

TEST_F(Advise, AnswersWithoutTheClientsRecords) {
  fs::remove(folder_ / "table.csv");
  fs::remove(folder_ / "table.schema.json");
  const json advice = advise("--records 60 --folder advice --out advised.toml");
  EXPECT_EQ(advice["records"], 60);
  EXPECT_EQ(advice["clients"], 5);
  EXPECT_EQ(advice, json::parse(read_file(folder_ / "advice" / "advice.json")));
  EXPECT_GT(fs::file_size(folder_ / "advice" / "advice.png"), 5'000U);
  std::vector<std::string> names;
  double best = 0, alone = 0;
  for (const json& row : advice["table"]) {
    names.push_back(row["name"]);
    if (!row["accuracy"].is_number()) continue;
    double& most = row["alone"].get<bool>() ? alone : best;
    if (row["seeds"].size() == 3) most = std::max(most, row["accuracy"].get<double>());
  }
  EXPECT_THAT(names, ::testing::IsSupersetOf({"as configured", "dp-head", "mr-mtl, λ 1", "ditto", "fedproto",
                                              "alone, adapter", "alone, step 2"}));
  EXPECT_LE(advice["alone_accuracy"], alone);
  EXPECT_GT(alone, 0.5);
  if (advice["worth_joining"].get<bool>()) {
    EXPECT_EQ(advice["expected_accuracy"], best);
  }
  EXPECT_GE(advice["what_if"].size(), 3U + 1U + 1U) << "of budgets, clients, records";
}

TEST_F(Advise, WritesAConfigThatRuns) {
  const json advice = advise("--records 60 --folder advice --out advised.toml");
  const Result run = sotto("run advised.toml --out run --json");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const std::string config = read_file(folder_ / "run" / "config.toml");
  for (const std::string& line : {fmt::format("name = '{}'", advice["settings"]["method"]["name"].get<std::string>()),
                                  fmt::format("rounds = {}", advice["settings"]["rounds"].get<int>()),
                                  std::string("epsilon = 4"), (folder_ / "table.csv").string()}) {
    EXPECT_THAT(config, HasSubstr(line));
  }
}

TEST_F(Advise, IsTheSameAgainAndGoesOnFromWhatIsThere) {
  const json first = advise("--records 60 --folder one");
  EXPECT_EQ(advise("--records 60 --folder two --jobs 1"), first);
  fs::remove_all(fs::directory_iterator(folder_ / "one" / "runs")->path());
  const Result again = sotto("advise config.toml --proxy proxy.csv --records 60 --folder one");
  EXPECT_EQ(again.exit_code, 0);
  EXPECT_THAT(again.err, HasSubstr("runs are done already"));
  EXPECT_EQ(json::parse(read_file(folder_ / "one" / "advice.json")), first);
}

TEST_F(Advise, SaysWhenJoiningIsNotWorthItsNoise) {
  write_config(0.01);
  const json advice = advise("--records 60 --folder advice");
  EXPECT_EQ(advice["worth_joining"], false);
  EXPECT_EQ(advice["settings"]["method"]["name"], "local-only");
  const Result text = sotto("advise config.toml --proxy proxy.csv --records 60 --folder advice");
  EXPECT_THAT(text.out, HasSubstr("is not worth its noise here"));
}

TEST_F(Advise, MistakesAreOneLine) {
  expect_user_error("advise config.toml", "--proxy is missing");
  expect_user_error("advise config.toml --proxy table.csv", "the clients' own dataset");
  expect_user_error("advise config.toml --proxy nowhere", "there is no dataset 'nowhere'");
  write_file_atomically(folder_ / "mine.toml", std::string_view("rounds = 1\n"));
  expect_user_error("advise config.toml --proxy proxy.csv --out mine.toml", "no advice wrote it");
  EXPECT_EQ(read_file(folder_ / "mine.toml"), "rounds = 1\n");
  write("plain.toml", "");
  expect_user_error("advise plain.toml --proxy proxy.csv", "no table [privacy]");
}

}  // namespace
}  // namespace sotto
