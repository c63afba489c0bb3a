// sotto account and sotto calibrate as programs meet them.
#include "program.h"

namespace sotto {
namespace {

using AccountProgram = Program;

TEST_F(AccountProgram, AnswersAsJson) {
  const Result exact = sotto("account --noise-multiplier 4 --steps 16 --delta 1e-5 --json");
  ASSERT_EQ(exact.exit_code, 0) << exact.err;
  const json value = json::parse(exact.out);
  EXPECT_NEAR(value["epsilon"].get<double>(), 4.37717809568124, 1e-12);
  EXPECT_EQ(value["method"], "exact");
  const json sampled = json::parse(
      sotto("account --noise-multiplier 1 --steps 1000 --sampling-rate 0.01 --adjacency add-remove --delta 1e-5 --json")
          .out);
  EXPECT_EQ(sampled["method"], "pld");
  EXPECT_EQ(sampled["adjacency"], "add-remove");
  const json delta = json::parse(sotto("account --noise-multiplier 40 --epsilon 100 --json").out);
  EXPECT_NEAR(delta["log_delta"].get<double>(), -7999971.19599558, 1e-6);
  const json rdp = json::parse(sotto("account --noise-multiplier 4 --order 8 --json").out);
  EXPECT_NEAR(rdp["rdp"].get<double>(), 0.25, 1e-12);
}

TEST_F(AccountProgram, RefusesWithAReasonAndExitTwo) {
  for (const char* arguments :
       {"--noise-multiplier 0 --delta 1e-5", "--noise-multiplier nan --delta 1e-5", "--noise-multiplier 1 --delta 2",
        "--noise-multiplier 1 --sampling-rate 0.1 --delta 1e-5", "--noise-multiplier 1 --delta 1e-5 --steps -1",
        "--noise-multiplier 1 --delta 1e-5 --method classical", "--noise-multiplier x --delta 1e-5", "--delta 1e-5",
        "--noise-multiplier 1", "--noise-multiplier 1 --delta 1e-5 --method pdl"}) {
    const Result result = sotto(std::string("account --json ") + arguments);
    EXPECT_EQ(result.exit_code, 2) << arguments;
    const json value = json::parse(result.out);
    EXPECT_TRUE(value["epsilon"].is_null()) << arguments;
    EXPECT_FALSE(value["reason"].get<std::string>().empty()) << arguments;
  }
}

TEST_F(AccountProgram, BatchesAnswerLineByLine) {
  std::string input = "not json\n{\"noise_multiplier\": 1, \"delta\": 1e-5}\n{\"noise_multiplyer\": 1}\n";
  for (int i = 0; i < 1000; ++i)
    input += fmt::format("{{\"noise_multiplier\": {}, \"steps\": 10, \"delta\": 1e-5}}\n", i + 1);
  const Result result = sotto("account --batch", input);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const std::vector<std::string> lines = split(trim(result.out), '\n');
  ASSERT_EQ(lines.size(), 1003U);
  EXPECT_THAT(lines[0], HasSubstr("not JSON"));
  EXPECT_NEAR(json::parse(lines[1])["epsilon"].get<double>(), 4.37717809568124, 1e-12);
  EXPECT_THAT(lines[2], HasSubstr("did you mean"));
  EXPECT_GT(json::parse(lines[3])["epsilon"].get<double>(), json::parse(lines[1002])["epsilon"].get<double>());
}

TEST_F(AccountProgram, ComposesFilesOfEvents) {
  write_file_atomically(folder_ / "list.json",
                        R"([{"mechanism": "pure", "step_epsilon": 0.5}, {"noise_multiplier": 2}])");
  write_file_atomically(folder_ / "lines.json",
                        "{\"mechanism\": \"pure\", \"step_epsilon\": 0.5}\n{\"noise_multiplier\": 2}\n");
  const json list = json::parse(sotto("account --compose list.json --delta 1e-5 --json").out);
  EXPECT_NEAR(list["epsilon"].get<double>(), 2.43553622, 3e-4);
  EXPECT_EQ(list["method"], "pld");
  EXPECT_EQ(json::parse(sotto("account --compose lines.json --delta 1e-5 --json").out), list);
}

TEST_F(AccountProgram, ShowsAllMethodsSideBySide) {
  const Result result = sotto("account --noise-multiplier 5 --steps 10 --delta 1e-5");
  EXPECT_EQ(result.exit_code, 0);
  for (const char* method : {"exact", "pld", "rdp-paper-tight", "advanced"}) EXPECT_THAT(result.out, HasSubstr(method));
  EXPECT_THAT(result.out, HasSubstr("refused: the classical rule"));
}

TEST_F(AccountProgram, CalibratesOrSaysWhyNot) {
  const json value = json::parse(sotto("calibrate --epsilon 1 --delta 1e-5 --steps 1 --json").out);
  EXPECT_NEAR(value["noise_multiplier"].get<double>(), 3.7306316348159418, 1e-12);
  const Result refused = sotto("calibrate --epsilon 0.1 --delta 1e-5 --method rdp-paper --json");
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_TRUE(json::parse(refused.out)["noise_multiplier"].is_null());
  const Result batch =
      sotto("calibrate --batch", "{\"epsilon\": 1, \"delta\": 1e-5, \"steps\": 4}\n{\"epsilon\": 0}\n");
  EXPECT_EQ(batch.exit_code, 0);
  EXPECT_THAT(batch.out, HasSubstr("reason"));
}

TEST_F(AccountProgram, KnowsRandomAllocation) {
  const std::string plan = "--sampling allocation --batches 12 --epochs 10 --adjacency zero-out --delta 1e-5 --json";
  const Result spent = sotto("account --mechanism gaussian --noise-multiplier 3.5 " + plan);
  ASSERT_EQ(spent.exit_code, 0) << spent.err;
  const json value = json::parse(spent.out);
  EXPECT_NEAR(value["epsilon"].get<double>(), 0.99196, 1e-4);
  EXPECT_EQ(value["method"], "pld");
  EXPECT_EQ(value["adjacency"], "zero-out");
  const json noise = json::parse(sotto("calibrate --epsilon 1 " + plan).out);
  EXPECT_NEAR(noise["noise_multiplier"].get<double>(), 3.4754, 1e-3);
  const json replaced = json::parse(sotto("calibrate --epsilon 1 --sampling allocation --batches 12 --epochs 10 "
                                          "--adjacency replace --delta 1e-5 --json")
                                        .out);
  EXPECT_NEAR(replaced["noise_multiplier"].get<double>(), 3.43, 0.02);
  const json batch =
      json::parse(sotto("account --batch", R"({"noise_multiplier": 3.5, "sampling": "allocation", "batches": 12, )"
                                           R"("epochs": 10, "adjacency": "zero-out", "delta": 1e-5})")
                      .out);
  EXPECT_EQ(batch["epsilon"], value["epsilon"]);
}

TEST_F(AccountProgram, RefusesSamplingThatContradictsItself) {
  for (const char* arguments :
       {"--sampling allocation --epochs 10 --adjacency zero-out", "--batches 12 --adjacency zero-out", "--epochs 10",
        "--sampling allocation --batches 12 --steps 10 --adjacency zero-out",
        "--sampling allocation --batches 12 --steps 10 --epochs 10 --adjacency zero-out",
        "--sampling allocation --batches 12 --sampling-rate 0.1 --adjacency zero-out",
        "--sampling allocation --batches 12", "--sampling allocation --batches 0 --adjacency zero-out",
        "--sampling allocation --batches 2.5 --adjacency zero-out",
        "--sampling allocation --batches 12 --adjacency zero-out --mechanism laplace",
        "--sampling allocation --batches 12 --adjacency zero-out --method rdp", "--sampling poisson",
        "--sampling none --sampling-rate 0.1 --adjacency zero-out", "--sampling shuffle"}) {
    const Result result = sotto(std::string("account --json --noise-multiplier 4 --delta 1e-5 ") + arguments);
    EXPECT_EQ(result.exit_code, 2) << arguments;
    const std::string reason = json::parse(result.out)["reason"].get<std::string>();
    EXPECT_FALSE(reason.empty()) << arguments;
    EXPECT_EQ(reason.find('\n'), std::string::npos) << reason;
  }
}

TEST_F(AccountProgram, HelpHasExamples) {
  for (const char* command : {"account", "calibrate", "bench account"}) {
    EXPECT_THAT(sotto(std::string(command) + " --help").out, HasSubstr("Example:")) << command;
  }
}

}  // namespace
}  // namespace sotto
