// Benchmarks as users run them: what they print, and that they compare what was asked.
#include "program.h"

namespace sotto {
namespace {

class Bench : public Program {
 protected:
  // Few records and many local epochs: a round is mostly training.
  std::string federation(const std::string& name, const std::string& method = "") {
    write(name, "", "",
          "[federation]\nbatch = 20\nlocal_epochs = 4\n[privacy]\nepsilon = 3.0\ndelta = 1e-3\nadjacency = "
          "\"replace\"\n" +
              method);
    return name;
  }

  json measured(const std::string& arguments) const {
    const Result result = sotto("bench method " + arguments + " --json --quiet");
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return result.exit_code == 0 ? json::parse(result.out) : json();
  }
};

TEST_F(Bench, AMethodAgainstItselfIsOne) {
  const json figures = measured("fedavg --against fedavg --repeats 60 --config " + federation("config.toml"));
  EXPECT_EQ(figures["method"], "fedavg");
  EXPECT_EQ(figures["against"], "fedavg");
  EXPECT_EQ(figures["threads"], 1);
  EXPECT_EQ(figures["repeats"], 60);
  EXPECT_LE(figures["ratio_low"], figures["ratio"]);
  EXPECT_GE(figures["ratio_high"], figures["ratio"]);
  EXPECT_NEAR(figures["ratio"], 1.0, 0.1);
  EXPECT_GT(figures["seconds_per_round"], 0.0);
}

TEST_F(Bench, RatiosAreOfTheFirstMethodOverTheSecond) {
  const std::string config = " --repeats 20 --config " + federation("config.toml");
  const json figures = measured("ldp-fedavg --against fedavg" + config);
  const json reversed = measured("fedavg --against ldp-fedavg" + config);
  EXPECT_GT(figures["ratio_low"], 1.0);
  EXPECT_LT(reversed["ratio_high"], 1.0);
  EXPECT_GT(figures["seconds_per_round"], figures["against_seconds_per_round"]);
}

TEST_F(Bench, SettingsReachTheMethodTheyAreMeantFor) {
  const std::string config =
      " --repeats 6 --config " + federation("clip.toml", "[method]\nname = \"ldp-fedavg\"\nclip = 0.5\n");
  measured("ldp-fedavg --against fedavg" + config);
  expect_user_error("bench method ldp-fedavg --against fedavg --set method.clip=-1" + config, "clip");
  expect_user_error("bench method fedavg --against ldp-fedavg --set-against method.clip=-1" + config, "clip");
  expect_user_error("bench method fedavg --against ldp-fedavg --set method.clip=1" + config, "clip");
  expect_user_error("bench method fedavg --against ldp-fedavg --set federation.batch=0" + config, "batch");
  expect_user_error("bench method fedavg --against ldp-fedavg --set-against federation.batch=8" + config,
                    "only method.* can differ");
}

TEST_F(Bench, RefusesWhatCannotBeCompared) {
  const std::string config = " --repeats 6 --config " + federation("config.toml");
  expect_user_error("bench method fedavgg --against fedavg" + config, "fedavg");
  expect_user_error("bench method fedavg --against nothing" + config, "no method is called 'nothing'");
  expect_user_error("bench method fedavg --against fedprox --set method.name=fedprox" + config, "method.name");
  expect_user_error("bench method fedavg --against fedprox --repeats 6 --config missing.toml", "missing.toml");
  // Unit `record`, which a method that protects clients refuses.
  expect_user_error("bench method fedavg --against dp-fedavg" + config, "unit");
}

// The quick form measures nothing that is worth comparing; but everything is connected, sent, folded and counted.
TEST_F(Bench, AFederationBetweenProcesses) {
  const Result result = sotto("bench federation --quick --json --quiet --folder " + folder_.string());
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const json figures = json::parse(result.out);
  for (const char* key :
       {"upload_ratio", "bare_stream_mb_s", "connections", "failed", "server_rss_mb", "rss_per_connection_kb",
        "rss_growth_1000_over_100", "idle_to_work_ms", "overhead_four_clients", "sealing_share"}) {
    ASSERT_TRUE(figures.contains(key)) << key;
    EXPECT_TRUE(figures[key].is_number()) << key;
  }
  EXPECT_EQ(figures["failed"], 0) << figures.value("failure", "");
  EXPECT_EQ(figures["connections"], 40);
  EXPECT_EQ(figures["uploads"], 50) << "of 10 and of 40 in a round each";
  EXPECT_GT(figures["upload_ratio"], 0);
  EXPECT_GT(figures["bare_stream_mb_s"], 0);
  EXPECT_GT(figures["server_rss_mb"], figures["listening_rss_mb"]);
  EXPECT_GT(figures["sealing_share"], 0);
  EXPECT_LT(figures["sealing_share"], 1);
  for (const auto& entry : fs::directory_iterator(folder_)) {
    EXPECT_FALSE(entry.path().filename().string().starts_with("sotto-bench")) << "it cleans up behind itself";
  }
  expect_user_error("bench federation --quick --connections 5 --reporters 6", "--reporters");
}

}  // namespace
}  // namespace sotto
