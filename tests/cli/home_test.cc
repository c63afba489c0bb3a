// What a home and a server's folder are good for besides taking part: models, ledgers, reports.
#include "operators.h"

namespace sotto {
namespace {

class Homes : public Operators {
 protected:
  // Two homes that take part; the second joins when `join_second` is called.
  void begin(const std::string& method = "ldp-fedavg", const std::string& serve = "", const std::string& allow = "") {
    init();
    write_config(2, 60, method, serve);
    start_server();
    for (const std::string home : {"north-a", "north-b"}) {
      ASSERT_EQ(sotto(enrolment(home, "--token " + token(home) + " --authority certs/authority.pem")).exit_code, 0);
      write_policy(home, 4.0, "\"" + method + "\"", allow);
    }
    run_in_background("join north-a --yes --log json", "a");
    wait_for("\"event\":\"plan\"", "a");
  }
  // The plan is shown to the owner first, and kept once the home takes part.
  void wait_until_kept(const std::string& home) const {
    const auto kept = [&] {
      std::error_code none_yet;
      for (const auto& entry : fs::directory_iterator(folder_ / home / "federations", none_yet)) {
        if (fs::exists(entry.path() / "plan.json")) return true;
      }
      return false;
    };
    const auto end = std::chrono::steady_clock::now() + kPatience;
    while (!kept() && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
  }
  Result join_second() { return sotto("join north-b --yes --json"); }
  void finish() {
    const Result joined = join_second();
    ASSERT_EQ(joined.exit_code, 0) << joined.err;
    wait_for("\"event\":\"finished\"", "a");
    wait_for("\"event\":\"finished\"");
  }
};

TEST_F(Homes, UseTheirModel) {
  begin();
  expect_user_error("predict north-b --test 3", "no federation was joined");
  finish();
  const json status = json::parse(sotto("status north-a --json").out);
  const std::string plan = status["federations"][0]["plan"];

  const Result predicted = sotto("predict north-a --test 1000 --json");
  ASSERT_EQ(predicted.exit_code, 0) << predicted.err;
  const json answers = json::parse(predicted.out);
  int64_t right = 0;
  for (const json& one : answers) right += one["truth"] == one["classes"][0]["class"] ? 1 : 0;
  const json last = json::parse(split(trim(file("a.out")), '\n').back(), nullptr, false);
  EXPECT_EQ(answers.size(), 75U) << "a quarter of 300 is held out";
  EXPECT_THAT(file("a.out"),
              HasSubstr(fmt::format("{:.1f} % of 75 records right", 100.0 * static_cast<double>(right) / 75)));
  EXPECT_EQ(sotto("predict north-a --data table.csv --json --federation " + plan).exit_code, 0);
  EXPECT_EQ(sotto("predict north-a --data table.csv --json --federation " + plan.substr(0, 6)).exit_code, 0);
  expect_user_error("predict north-a --test 3 --federation 0000", "has joined no federation 0000");
  expect_user_error("predict north-a --test 3 --client 1", "is the home of one client");

  const Result exported = sotto("export north-a -o own.safetensors --json");
  ASSERT_EQ(exported.exit_code, 0) << exported.err;
  EXPECT_EQ(json::parse(exported.out)["round"], 2);
  EXPECT_EQ(json::parse(exported.out)["not_private"], nullptr) << "noisy steps made it";
  EXPECT_EQ(sotto("export server -o global.safetensors").exit_code, 0);
  EXPECT_EQ(file("own.safetensors"), file("global.safetensors")) << "this method has a global model alone";
  expect_user_error("export north-a --csv -", "north-a is the home of a client");
  expect_user_error("report north-a", "sotto status north-a");

  const Result served = sotto("predict server --data table.csv --json");
  ASSERT_EQ(served.exit_code, 0) << served.err;
  EXPECT_EQ(json::parse(served.out).size(), 300U);
  expect_user_error("predict server --test 3", "a server has no records");
  expect_user_error("predict server --test 3 --client 0", "at their homes");
  const Result report = sotto("report server");
  EXPECT_EQ(report.exit_code, 0) << report.err;
  EXPECT_THAT(report.out, HasSubstr("ldp-fedavg"));
  EXPECT_EQ(sotto("report server -o page.html").exit_code, 0);

  EXPECT_THAT(sotto("ledger show north-a").out, HasSubstr("home of"));
  EXPECT_THAT(sotto("ledger verify north-a").out, HasSubstr("2 rows, chain intact"));
  EXPECT_THAT(sotto("ledger verify server").out, HasSubstr("4 rows, chain intact"));
}

TEST_F(Homes, SayWhatIsNotPrivate) {
  begin("local-only", "", "unproven = true\n");
  finish();
  const Result predicted = sotto("predict north-a --test 3");
  EXPECT_EQ(predicted.exit_code, 0) << predicted.err;
  EXPECT_THAT(predicted.err, HasSubstr("the model of north-a is not private"));
  const Result exported = sotto("export north-a -o own.pt --json");
  EXPECT_THAT(json::parse(exported.out)["not_private"].get<std::string>(), HasSubstr("must not leave"));
  expect_user_error("export server -o global.pt", "every client has its own");
}

TEST_F(Homes, HaveAModelInTheMiddle) {
  begin();
  wait_until_kept("north-a");
  expect_user_error("predict north-a --test 3", "has no model yet");
  // The second begins the rounds and is gone; the first has worked on one by then.
  run_in_background("join north-b --yes --log json", "b");
  wait_for("\"event\":\"round\"", "a");
  const Result predicted = sotto("predict north-a --test 3 --json");
  EXPECT_EQ(predicted.exit_code, 0) << predicted.err;
  EXPECT_EQ(json::parse(predicted.out).size(), 3U);
  wait_for("\"event\":\"finished\"");
}

TEST_F(Homes, SayHowGoodTheModelIsIfTheirPolicyAllowsIt) {
  begin("ldp-fedavg", "evaluation = \"released\"\n", "evaluation = \"released\"\n");
  write_policy("north-b", 4.0, "\"ldp-fedavg\"");
  const Result refused = join_second();
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("allow.evaluation is \"local\""));
  EXPECT_FALSE(fs::exists(folder_ / "north-b/outbox"));
  EXPECT_EQ(json::parse(sotto("status server --json").out)["members"].size(), 1U) << "the server has not heard of it";

  write_policy("north-b", 4.0, "\"ldp-fedavg\"", "evaluation = \"released\"\n");
  EXPECT_EQ(sotto("check north-b").exit_code, 0);
  const Result joined = sotto("join north-b --yes");
  ASSERT_EQ(joined.exit_code, 0) << joined.err;
  EXPECT_THAT(joined.err, HasSubstr("evaluation  server   once, after the"));
  EXPECT_THAT(joined.err, HasSubstr("evaluation: sent"));
  wait_for("\"event\":\"finished\"");
  const json status = json::parse(sotto("status server --json").out);
  EXPECT_EQ(status["evaluation"]["clients"].size(), 2U);
  EXPECT_GT(status["evaluation"]["noise_stddev"].get<double>(), 0);
  EXPECT_LE(status["epsilon"]["spent"].get<double>(), 4.0 * (1 + 1e-9));
  EXPECT_THAT(sotto("status server").out, HasSubstr("by the noise"));
  EXPECT_THAT(sotto("ledger verify server").out, HasSubstr("6 rows, chain intact"));
  EXPECT_THAT(sotto("ledger verify north-b").out, HasSubstr("3 rows, chain intact"));
}

}  // namespace
}  // namespace sotto
