// sotto fit as its users meet it.
#include "program.h"

#include <unistd.h>

#include <chrono>
#include <thread>

namespace sotto {
namespace {

class Fit : public Program {
 protected:
  Fit() {
    // Public data of the same kind as the table, but not the table.
    RandomStream stream(2, "proxy");
    std::string rows = "a,b,c,label\n";
    for (int i = 0; i < 1500; ++i) {
      const int label = i % 3;
      rows += fmt::format("{:.4f},{:.4f},{:.4f},{}\n", stream.normal() + (label == 0 ? 3 : 0),
                          stream.normal() + (label == 1 ? 3 : 0), stream.normal(), label);
    }
    write_file_atomically(folder_ / "proxy.csv", rows);
    write_file_atomically(folder_ / "proxy.schema.json", std::string_view(kSchema));
    write_config("pac.toml", "proxy = \"proxy.csv\"\nbounds = [4, 0.25, 1]\nbudgets = [8, 2, 32]\nrepeats = 2\n");
  }

  void write_config(const std::string& name, const std::string& fit, const std::string& method = kMethod) {
    write(name, "rounds = 3", "", method + kPrivacy + (fit.empty() ? "" : "[fit]\n" + fit));
  }

  json curve_file(const std::string& folder) const { return json::parse(read_file(folder_ / folder / "curve.json")); }

  size_t runs(const std::string& folder) const {
    size_t count = 0;
    for (const auto& entry : fs::directory_iterator(folder_ / folder / "runs")) count += entry.is_directory() ? 1 : 0;
    return count;
  }

  // The curve that the config names is yet to be made.
  static constexpr const char* kMethod = "[method]\nname = \"pac-dp\"\ncurve = \"fitted/curve.json\"\n";
  static constexpr const char* kPrivacy =
      "[privacy]\nepsilon = 4\ndelta = 1e-3\nadjacency = \"zero-out\"\nbudgets = [1, 2]\n[federation]\nlr = 0.2\n";
};

TEST_F(Fit, MakesACurveThatTheMethodReads) {
  const Result result = sotto("fit pac.toml --out fitted --json");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const json value = json::parse(result.out);
  EXPECT_EQ(value, curve_file("fitted"));
  EXPECT_EQ(value["fit"]["matrix"]["budgets"], json({2, 8, 32}));
  EXPECT_EQ(value["fit"]["matrix"]["bounds"], json({0.25, 1, 4}));
  EXPECT_EQ(value["fit"]["matrix"]["repeats"], 2);
  EXPECT_EQ(value["fit"]["quick"], false);
  EXPECT_EQ(value["mechanism"]["proxy"], "proxy.csv");
  EXPECT_EQ(value["mechanism"]["proxy_is_client_data"], false);
  EXPECT_EQ(value["mechanism"]["rounds"], 3);
  EXPECT_EQ(runs("fitted"), 18U);
  EXPECT_GT(fs::file_size(folder_ / "fitted" / "curve.png"), 10'000U);
  const Result run = sotto("run pac.toml --out run --json");
  ASSERT_EQ(run.exit_code, 0) << run.err;
}

TEST_F(Fit, TheMatrixIsTheRunsOwnAccuracy) {
  ASSERT_EQ(sotto("fit pac.toml --out fitted --quiet").exit_code, 0);
  const json value = curve_file("fitted");
  // One pair by hand: the user's config on the proxy with one budget for all and a constant bound.
  double sum = 0;
  for (const int seed : {1, 2}) {
    const Result run =
        sotto(fmt::format("run pac.toml --out by-hand-{} --json --set data.path=proxy.csv --set privacy.budgets=[] "
                          "--set privacy.epsilon=8 --set seed={} "
                          "--set 'method.curve={{family=\"constant\",coefficients=[0.25]}}'",
                          seed, seed));
    ASSERT_EQ(run.exit_code, 0) << run.err;
    sum += json::parse(run.out)["accuracy"]["mean"].get<double>();
  }
  EXPECT_NEAR(value["fit"]["matrix"]["mean"][1][0].get<double>(), sum / 2, 1e-5);
  for (size_t i = 0; i < 3; ++i) {
    const json& row = value["fit"]["matrix"]["mean"][i];
    const auto best = std::max_element(row.begin(), row.end()) - row.begin();
    EXPECT_EQ(value["fit"]["points"][i]["bound"], value["fit"]["matrix"]["bounds"][static_cast<size_t>(best)]);
  }
}

TEST_F(Fit, FinishedRunsAreNotRepeatedAndLostOnesAre) {
  ASSERT_EQ(sotto("fit pac.toml --out fitted --quiet").exit_code, 0);
  const json first = curve_file("fitted");
  std::vector<fs::path> folders;
  for (const auto& entry : fs::directory_iterator(folder_ / "fitted" / "runs")) folders.push_back(entry.path());
  std::sort(folders.begin(), folders.end());
  fs::remove_all(folders[0]);
  fs::remove(folders[1] / "summary.json");  // killed before its last word
  const auto untouched = fs::last_write_time(folders[2] / "summary.json");
  const Result again = sotto("fit pac.toml --out fitted");
  ASSERT_EQ(again.exit_code, 0) << again.err;
  EXPECT_THAT(again.err, HasSubstr("16 of 18 runs are done already"));
  EXPECT_EQ(curve_file("fitted"), first);
  EXPECT_EQ(fs::last_write_time(folders[2] / "summary.json"), untouched);
}

TEST_F(Fit, KilledAtAnyMomentItContinuesToTheSameCurve) {
  ASSERT_EQ(sotto("fit pac.toml --out whole --quiet").exit_code, 0);
  const std::string start = fmt::format(
      "cd {} && SOTTO_DATA= SOTTO_HOME={}/home exec {} fit pac.toml --out cut --quiet --jobs 1 "
      "2>/dev/null",
      folder_.string(), folder_.string(), SOTTO_PROGRAM);
  const pid_t child = ::fork();
  if (child == 0) {
    ::execl("/bin/sh", "sh", "-c", start.c_str(), nullptr);
    ::_exit(127);
  }
  const auto some_done = [&] { return fs::exists(folder_ / "cut" / "runs") && runs("cut") >= 3; };
  for (int i = 0; i < 3000 && !some_done(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  ::kill(child, SIGKILL);
  int status = 0;
  ::waitpid(child, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status)) << "the fit was over before it could be killed";
  EXPECT_FALSE(fs::exists(folder_ / "cut" / "curve.json"));
  const Result again = sotto("fit pac.toml --out cut --quiet");
  ASSERT_EQ(again.exit_code, 0) << again.err;
  EXPECT_EQ(curve_file("cut"), curve_file("whole"));
}

TEST_F(Fit, TheNumberOfJobsDoesNotChangeTheCurve) {
  ASSERT_EQ(sotto("fit pac.toml --out one --jobs 1 --quiet").exit_code, 0);
  ASSERT_EQ(sotto("fit pac.toml --out two --jobs 2 --quiet").exit_code, 0);
  EXPECT_EQ(curve_file("one"), curve_file("two"));
}

TEST_F(Fit, PrintsTheMatrixAndTheFamilies) {
  const Result result = sotto("fit pac.toml --out fitted --set fit.monotone=true --set fit.repeats=1");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  for (const char* part : {"C = 0.25", "power", "quadratic", "piecewise-linear", "leave-one-out", " *",
                           "method.curve = \"fitted/curve.json\""}) {
    EXPECT_THAT(result.out, HasSubstr(part));
  }
  const std::string family = curve_file("fitted")["curve"]["family"];
  EXPECT_TRUE(family == "isotonic" || family == "constant") << family;
}

TEST_F(Fit, ABoundThatIsBestByChanceIsNoKnot) {
  const Result some = sotto("fit pac.toml --out some --json --set 'fit.budgets=[0.001, 8, 32]'");
  ASSERT_EQ(some.exit_code, 0) << some.err;
  EXPECT_THAT(some.err, HasSubstr("at ε = 0.001 no bound is above chance"));
  const json value = json::parse(some.out);
  EXPECT_EQ(value["fit"]["points"][0]["above_chance"], false);
  EXPECT_EQ(value["fit"]["points"][0]["kept"], false);
  EXPECT_EQ(value["fit"]["points"][2]["above_chance"], true);
  EXPECT_GT(value["fit"]["matrix"]["chance"].get<double>(), 0.3);
  expect_user_error("fit pac.toml --out none --set 'fit.budgets=[0.001, 0.002]'", "no curve can be learnt");
}

TEST_F(Fit, QuickIsSmallAndSaysSo) {
  const Result result = sotto(
      "fit pac.toml --out fitted --quick --json --set rounds=9 --set 'fit.bounds=[1, 2, 3, 4, 5]' "
      "--set 'fit.budgets=[1, 2, 3, 4, 5, 6]'");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const json value = json::parse(result.out);
  EXPECT_EQ(value["fit"]["quick"], true);
  EXPECT_EQ(value["fit"]["matrix"]["repeats"], 1);
  EXPECT_EQ(value["fit"]["matrix"]["bounds"], json({1, 3, 5}));
  EXPECT_EQ(value["fit"]["matrix"]["budgets"], json({1, 4, 6}));
  EXPECT_EQ(value["mechanism"]["rounds"], 3);
}

TEST_F(Fit, FewerClientsKeepTheirShareOfTheCohort) {
  const Result result = sotto(
      "fit pac.toml --out fitted --quick --json --set data.clients=10 --set federation.cohort=5 --set fit.clients=4 "
      "--set fit.limit=120 --set fit.axis=noise");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const json value = json::parse(result.out);
  EXPECT_EQ(value["mechanism"]["clients"], 4);
  EXPECT_EQ(value["mechanism"]["cohort"], 2);
  EXPECT_EQ(value["mechanism"]["records"], 120);
  EXPECT_EQ(value["curve"]["axis"], "noise");
  const json& points = value["fit"]["points"];
  EXPECT_GT(points[0]["noise"].get<double>(), 0);
  EXPECT_LT(points[0]["noise"].get<double>(), points[1]["noise"].get<double>());  // larger = less noise
}

TEST_F(Fit, ANamedProxyNeedsNoFiles) {
  const Result result = sotto(
      "fit pac.toml --out fitted --quick --json --set fit.proxy=synthetic-digits --set fit.limit=200 "
      "--set data.clients=2 --set 'fit.bounds=[1]' --set 'fit.budgets=[8]' --set 'data.otherwise=[\"fashion-mnist\"]'");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  // What may stand in for the clients' data must not stand in for the proxy.
  for (const auto& run : fs::directory_iterator(folder_ / "fitted" / "runs")) {
    EXPECT_EQ(summary("fitted/runs/" + run.path().filename().string())["dataset"], "synthetic-digits");
  }
  EXPECT_EQ(json::parse(result.out)["curve"]["family"], "constant");
  EXPECT_EQ(json::parse(result.out)["curve"]["coefficients"], json({1}));
}

TEST_F(Fit, WhatIsMissingIsNamed) {
  write_config("no_fit.toml", "");
  expect_user_error("fit no_fit.toml", "no_fit.toml: there is no table [fit]");
  write_config("no_proxy.toml", "bounds = [1]\n");
  expect_user_error("fit no_proxy.toml", "fit.proxy is not set");
  write_config("no_bounds.toml", "proxy = \"proxy.csv\"\n");
  expect_user_error("fit no_bounds.toml", "fit.bounds is not set");
  write("no_privacy.toml", "", "", std::string(kMethod) + "[fit]\nproxy = \"proxy.csv\"\nbounds = [1]\n");
  expect_user_error("fit no_privacy.toml", "there is no table [privacy]");
  write_config("no_curve.toml", "proxy = \"proxy.csv\"\nbounds = [1]\n", "[method]\nname = \"ldp-fedavg\"\n");
  expect_user_error("fit no_curve.toml", "method ldp-fedavg has no clipping curve");
  expect_user_error("fit pac.toml --set fit.bounds=[0]", "fit.bounds must be greater than 0");
  expect_user_error("fit pac.toml --set fit.bond=[1]", "did you mean 'bounds'?");
  expect_user_error("fit pac.toml --set fit.proxy=nowhere.csv", "nowhere.csv");
  expect_user_error("fit none.toml", "there is no config none.toml");
  EXPECT_FALSE(fs::exists(folder_ / "runs"));
}

TEST_F(Fit, ClientsDataIsNoProxyUnlessItIsSaidToBePublic) {
  expect_user_error("fit pac.toml --set fit.proxy=table.csv", "proxy data must be public");
  expect_user_error("fit pac.toml --set fit.proxy=./table.csv", "proxy data must be public");
  fs::copy_file(folder_ / "table.csv", folder_ / "copy.csv");
  fs::copy_file(folder_ / "table.schema.json", folder_ / "copy.schema.json");
  expect_user_error("fit pac.toml --set fit.proxy=copy.csv", "proxy data must be public");
  expect_user_error("fit pac.toml --set data.path= --set data.name=digits --set fit.proxy=digits",
                    "proxy data must be public");
  const Result allowed = sotto("fit pac.toml --out fitted --quick --json --set fit.proxy=table.csv --same-data");
  ASSERT_EQ(allowed.exit_code, 0) << allowed.err;
  EXPECT_THAT(allowed.err, HasSubstr("no budget covers it"));
  EXPECT_EQ(json::parse(allowed.out)["mechanism"]["proxy_is_client_data"], true);
}

}  // namespace
}  // namespace sotto
