// Privacy as users of the program meet it: plans, budgets, ledgers.
#include "program.h"

#include <sqlite3.h>

#include <cmath>

namespace sotto {
namespace {

class Privacy : public Program {
 protected:
  std::string local(const std::string& name, const std::string& privacy = "", const std::string& method = "") {
    write(name, "rounds = 3", "",
          "[federation]\nbatch = 16\n[method]\nname = \"ldp-fedavg\"\n" + method +
              "[privacy]\nepsilon = 3.0\ndelta = 1e-3\nadjacency = \"replace\"\n" + privacy);
    return name;
  }

  void change_ledger(const std::string& run, const std::string& sql) const {
    sqlite3* database = nullptr;
    ASSERT_EQ(sqlite3_open((folder_ / run / "ledger.sqlite").c_str(), &database), SQLITE_OK);
    EXPECT_EQ(sqlite3_exec(database, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK);
    sqlite3_close(database);
  }
};

TEST_F(Privacy, ARunPrintsClaimedAndProvenEpsilon) {
  const Result result = sotto("run " + local("private.toml") + " --out run --json");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const json privacy = json::parse(result.out)["privacy"];
  EXPECT_LE(privacy["proven_epsilon"]["max"], 3.0);
  EXPECT_GT(privacy["proven_epsilon"]["min"], 2.9);
  EXPECT_EQ(privacy["claimed_epsilon"]["max"].is_number(), true);
  EXPECT_EQ(privacy["why_unproven"], nullptr);
  EXPECT_EQ(privacy["delta"], 1e-3);
  EXPECT_EQ(privacy["adjacency"], "replace");
  EXPECT_EQ(privacy["observers"].size(), 3U);
  EXPECT_EQ(json::parse(result.out)["noise"], "replay");
}

TEST_F(Privacy, NoiseFromTheSeedIsCalledSimulated) {
  const Result run = sotto("run " + local("private.toml") + " --out run");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const json privacy = summary("run")["privacy"];
  EXPECT_EQ(privacy["basis"], "simulated");
  EXPECT_EQ(privacy["basis_why"], "noise can be recomputed from the seed");
  EXPECT_TRUE(privacy["proven_epsilon"]["max"].is_number()) << "programs find the number where it was";
  EXPECT_THAT(run.out, HasSubstr(", simulated ε "));
  EXPECT_THAT(run.out, HasSubstr("\n              simulated: noise can be recomputed from the seed\n"));
  const json shown = json::parse(sotto("ledger show run --json").out);
  EXPECT_EQ(shown["basis"], "simulated");
  EXPECT_EQ(shown["basis_why"], privacy["basis_why"]);
  const std::string table = sotto("report run").out;
  EXPECT_THAT(table, HasSubstr("simulated ε"));
  const std::string swept = sotto("sweep private.toml --seeds 1 --out swept").out;
  EXPECT_THAT(swept, HasSubstr("simulated ε"));
  EXPECT_EQ(json::parse(read_file(folder_ / "swept" / "sweep.json"))["cells"][0]["basis"], "simulated");
  const std::string plan = sotto("plan private.toml").out;
  EXPECT_THAT(plan, HasSubstr("basis       simulated: noise can be recomputed from the seed"));
  const std::string ledger = sotto("ledger show run").out;
  for (const std::string& text : {run.out, run.err, table, swept, plan, ledger}) {
    EXPECT_EQ(text.find("proven"), std::string::npos) << text;
  }
}

TEST_F(Privacy, SecureNoiseIsCalledProven) {
  const Result run = sotto("run " + local("secure.toml", "noise = \"secure\"\n") + " --out run");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(summary("run")["privacy"]["basis"], "proven");
  EXPECT_EQ(summary("run")["privacy"]["basis_why"], nullptr);
  EXPECT_THAT(run.out, HasSubstr(", proven ε "));
  EXPECT_THAT(run.err, HasSubstr("proven ε"));
  const std::string table = sotto("report run").out, plan = sotto("plan secure.toml").out,
                    ledger = sotto("ledger show run").out;
  EXPECT_THAT(table, HasSubstr("proven ε"));
  EXPECT_THAT(ledger, HasSubstr("largest proven ε (server)"));
  EXPECT_EQ(json::parse(sotto("plan secure.toml --json").out)["basis"], "proven");
  for (const std::string& text : {run.out, run.err, table, plan, ledger}) {
    EXPECT_EQ(text.find("simulated"), std::string::npos) << text;
  }
}

TEST_F(Privacy, AProvenEpsilonAmongSimulatedOnesSaysSo) {
  ASSERT_EQ(sotto("run " + local("private.toml") + " --out replayed --quiet").exit_code, 0);
  ASSERT_EQ(sotto("run private.toml --set privacy.noise=secure --out secure --quiet").exit_code, 0);
  ASSERT_EQ(sotto("run config.toml --set rounds=1 --out clear --quiet").exit_code, 0);
  const std::string table = sotto("report replayed secure clear").out;
  EXPECT_THAT(table, HasSubstr("simulated ε"));
  EXPECT_EQ(table.find("(proven)"), table.rfind("(proven)")) << table;
  EXPECT_GT(table.find("(proven)"), table.find("secure")) << table;
}

TEST_F(Privacy, PoissonCohortsFollowFromTheSeedToo) {
  write("central.toml", "rounds = 2", "",
        "[federation]\ncohort = 2\nsampling = \"poisson\"\n[method]\nname = \"dp-fedavg\"\n[privacy]\nepsilon = "
        "3.0\ndelta = 1e-2\nadjacency = \"add-remove\"\nunit = \"client\"\nobserver = \"clients\"\n");
  const Result run = sotto("run central.toml --out run");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(summary("run")["privacy"]["basis_why"], "noise and cohorts can be recomputed from the seed");
  EXPECT_THAT(run.out, HasSubstr("simulated: noise and cohorts can be recomputed from the seed"));
}

TEST_F(Privacy, ASummaryOfBeforeThereWasABasisIsReadByItsNoise) {
  ASSERT_EQ(sotto("run " + local("private.toml") + " --out run --quiet").exit_code, 0);
  json old = summary("run");
  old["privacy"].erase("basis");
  old["privacy"].erase("basis_why");
  old.erase("checksum");
  write_file_atomically(folder_ / "run" / "summary.json", old.dump());
  EXPECT_EQ(sotto("ledger verify run").exit_code, 0);
  EXPECT_THAT(sotto("report run").out, HasSubstr("simulated ε"));
  old["noise"] = "secure";
  write_file_atomically(folder_ / "run" / "summary.json", old.dump());
  EXPECT_THAT(sotto("report run").out, HasSubstr("proven ε"));
}

TEST_F(Privacy, ASimulationThatCallsItselfProvenIsFound) {
  ASSERT_EQ(sotto("run " + local("private.toml") + " --out run --quiet").exit_code, 0);
  json changed = summary("run");
  changed["privacy"]["basis"] = "proven";
  changed.erase("checksum");
  write_file_atomically(folder_ / "run" / "summary.json", changed.dump());
  expect_user_error("ledger verify run", "privacy.basis");
}

TEST_F(Privacy, PlanSaysBetweenWhichNeighboursTheGuaranteeHolds) {
  local("private.toml");
  write("central.toml", "rounds = 2", "",
        "[method]\nname = \"dp-fedavg\"\n[privacy]\nepsilon = 3.0\ndelta = 1e-2\nadjacency = \"add-remove\"\nunit = "
        "\"client\"\nobserver = \"clients\"\n");
  const auto means = [&](const std::string& config, const std::string& adjacency) {
    const std::string arguments = fmt::format("plan {} --set privacy.adjacency={}", config, adjacency);
    const Result result = sotto(arguments + " --json");
    EXPECT_EQ(result.exit_code, 0) << result.err;
    const json plan = json::parse(result.out);
    EXPECT_EQ(plan["adjacency"], adjacency);
    const auto sentence = plan["adjacency_means"].get<std::string>();
    std::string shown = sotto(arguments).out;  // in lines of 80 characters
    for (size_t at = 0; (at = shown.find("\n            ", at)) != std::string::npos;) shown.replace(at, 13, " ");
    EXPECT_THAT(shown, HasSubstr(fmt::format("\nadjacency   {}: {}\n", adjacency, sentence)));
    return sentence;
  };
  EXPECT_THAT(means("central.toml", "add-remove"), HasSubstr("whether a client takes part at all"));
  EXPECT_THAT(means("private.toml", "zero-out"), HasSubstr("whether a record is blank"));
  EXPECT_THAT(means("private.toml", "replace"), HasSubstr("how many records there are is public"));
  const json clear = json::parse(sotto("plan config.toml --json").out);
  EXPECT_EQ(clear["adjacency"], nullptr);
  EXPECT_EQ(clear["adjacency_means"], nullptr);
  EXPECT_EQ(clear["basis"], "proven") << "what is sent in the clear is known to be so";
}

TEST_F(Privacy, PlanShowsTheNoiseBeforeAnythingIsSpent) {
  const Result result = sotto("plan " + local("private.toml") + " --json");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const json release = json::parse(result.out)["releases"][0];
  for (const char* key : {"sensitivity", "noise_stddev", "noise_multiplier", "epsilon", "noise_per_coordinate",
                          "noise_in_norm", "noise_over_run"}) {
    EXPECT_GT(release[key], 0.0) << key;
  }
  EXPECT_LE(release["epsilon"], 3.0);
  EXPECT_THAT((std::vector<std::string>{"noise is small", "noise is noticeable", "noise dominates"}),
              ::testing::Contains(release["verdict"].get<std::string>()));
  EXPECT_THAT(sotto("plan private.toml").out, HasSubstr("budget ε"));
  EXPECT_FALSE(fs::exists(folder_ / "runs"));
}

TEST_F(Privacy, NoiseThatDecidesAChoiceIsComparedWithNothing) {
  write("choice.toml", "", "",
        "[method]\nname = \"fedproto\"\nmechanism = \"vpp\"\nwidth = 10\nhead = [8]\n"
        "[privacy]\nepsilon = 3.0\ndelta = 1e-3\nadjacency = \"replace\"\n");
  const Result result = sotto("plan choice.toml --set model.name=mlp --json");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  int without = 0;
  const json plan = json::parse(result.out);
  for (const json& release : plan["budgets"][0]["releases"]) {
    EXPECT_GT(release.at("noise_multiplier"), 0.0);
    EXPECT_EQ(release.at("verdict").is_null(), release.at("noise_over_run").is_null());
    without += release.at("verdict").is_null() && release.at("noise_stddev").is_null() ? 1 : 0;
  }
  EXPECT_EQ(without, 1) << "the selection of dimensions";
  const std::string text = sotto("plan choice.toml --set model.name=mlp").out;
  EXPECT_THAT(text, ::testing::Not(HasSubstr("nan")));
  EXPECT_THAT(text, HasSubstr("  –  "));
}

TEST_F(Privacy, TheLedgerShowsAndVerifies) {
  ASSERT_EQ(sotto("run " + local("private.toml") + " --out run --quiet").exit_code, 0);
  const json shown = json::parse(sotto("ledger show run --json").out);
  EXPECT_EQ(shown["rows"], 15);
  EXPECT_EQ(shown["clients"].size(), 5U);
  EXPECT_EQ(shown["over_time"].size(), 3U);
  double previous = 0;
  for (const json& round : shown["over_time"]) {
    EXPECT_GT(round["server"], previous);
    previous = round["server"];
  }
  EXPECT_EQ(shown["clients"][0]["server"]["proven_epsilon"], summary("run")["privacy"]["proven_epsilon"]["max"]);
  EXPECT_EQ(sotto("ledger verify run").exit_code, 0);
  EXPECT_THAT(sotto("ledger show run").out, HasSubstr("largest simulated ε"));
}

TEST_F(Privacy, ATamperedLedgerIsFound) {
  ASSERT_EQ(sotto("run " + local("private.toml") + " --out run --quiet").exit_code, 0);
  change_ledger("run", "UPDATE releases SET noise = noise * 2 WHERE client = 3");
  expect_user_error("ledger verify run", "tampered");
  change_ledger("run", "DELETE FROM releases WHERE client = 3");
  expect_user_error("ledger verify run", "tampered");
}

TEST_F(Privacy, AChangedSummaryIsFound) {
  ASSERT_EQ(sotto("run " + local("private.toml") + " --out run --quiet").exit_code, 0);
  json changed = summary("run");
  changed["privacy"]["proven_epsilon"]["max"] = 0.1;
  write_file_atomically(folder_ / "run" / "summary.json", changed.dump());
  expect_user_error("ledger verify run", "does not fit its checksum");
  changed.erase("checksum");
  changed["checksum"] = sha256(changed.dump());
  write_file_atomically(folder_ / "run" / "summary.json", changed.dump());
  expect_user_error("ledger verify run", "privacy.proven_epsilon");
}

TEST_F(Privacy, ALostLedgerIsNoProof) {
  ASSERT_EQ(sotto("run " + local("private.toml") + " --out run --quiet").exit_code, 0);
  const json before = summary("run");
  fs::remove(folder_ / "run" / "ledger.sqlite");
  for (const char* command : {"run private.toml --out run --resume", "ledger verify run", "ledger show run",
                              "report run", "report run -o page.html", "export run --csv -",
                              "export run --csv - --table ledger", "export run --tensorboard events"}) {
    expect_user_error(command, "run has no ledger");
  }
  EXPECT_EQ(summary("run"), before);
  EXPECT_FALSE(fs::exists(folder_ / "page.html"));
}

TEST_F(Privacy, AnotherRunsLedgerIsNoProof) {
  local("private.toml");
  ASSERT_EQ(sotto("run private.toml --out run --quiet").exit_code, 0);
  ASSERT_EQ(sotto("run private.toml --out other --quiet --set method.clip=0.5").exit_code, 0);
  fs::copy_file(folder_ / "other" / "ledger.sqlite", folder_ / "run" / "ledger.sqlite",
                fs::copy_options::overwrite_existing);
  for (const char* command : {"run private.toml --out run --resume", "ledger verify run", "ledger show run"}) {
    expect_user_error(command, "is not the ledger of its run");
  }
  fs::remove(folder_ / "run" / "summary.json");
  expect_user_error("ledger verify run", "is not the ledger of its run");
}

TEST_F(Privacy, ASweepDoesNotCountARunWithoutItsLedger) {
  local("private.toml");
  ASSERT_EQ(sotto("sweep private.toml --out sweep --quiet").exit_code, 0);
  for (const auto& entry : fs::directory_iterator(folder_ / "sweep")) {
    if (entry.is_directory()) fs::remove(entry.path() / "ledger.sqlite");
  }
  expect_user_error("sweep private.toml --out sweep", "has no ledger");
}

TEST_F(Privacy, AResumedRunSpendsNoMoreThanAnUnbrokenOne) {
  local("private.toml");
  ASSERT_EQ(sotto("run private.toml --out whole --quiet").exit_code, 0);
  ASSERT_EQ(sotto("run private.toml --out again --quiet").exit_code, 0);
  fs::remove(folder_ / "again" / "summary.json");
  for (const auto& entry : fs::directory_iterator(folder_ / "again" / "checkpoints")) fs::remove(entry.path());
  ASSERT_EQ(sotto("run private.toml --out again --resume --quiet").exit_code, 0) << "from the very start";
  EXPECT_EQ(summary("again")["privacy"]["proven_epsilon"], summary("whole")["privacy"]["proven_epsilon"]);
  EXPECT_EQ(summary("again")["accuracy"], summary("whole")["accuracy"]);
}

// Secure noise is never drawn twice: rounds that are run again must be paid again, and there is no budget left for
// them.
TEST_F(Privacy, ARepeatedSecureRunAbstainsInsteadOfOverspending) {
  local("secure.toml", "noise = \"secure\"\n");
  ASSERT_EQ(sotto("run secure.toml --out run --quiet").exit_code, 0);
  EXPECT_EQ(summary("run")["noise"], "secure");
  for (const auto& entry : fs::directory_iterator(folder_ / "run" / "checkpoints")) fs::remove(entry.path());
  const Result again = sotto("run secure.toml --out run --resume");
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_THAT(again.err, HasSubstr("abstains"));
  EXPECT_LE(summary("run")["privacy"]["proven_epsilon"]["max"], 3.0);
  EXPECT_EQ(sotto("ledger verify run").exit_code, 0);
}

TEST_F(Privacy, CentralMethodsSayThatTheServerSeesAll) {
  write("central.toml", "rounds = 2", "",
        "[method]\nname = \"dp-fedavg\"\n[privacy]\nepsilon = 3.0\ndelta = 1e-2\nadjacency = \"add-remove\"\nunit = "
        "\"client\"\nobserver = \"clients\"\n");
  const Result result = sotto("run central.toml --out run --json");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const json privacy = json::parse(result.out)["privacy"];
  EXPECT_LE(privacy["proven_epsilon"]["max"], 3.0);
  EXPECT_EQ(privacy["observers"][0]["observer"], "server");
  EXPECT_EQ(privacy["observers"][0]["proven_epsilon"], nullptr);
  EXPECT_THAT(privacy["observers"][0]["why_unproven"].get<std::string>(), HasSubstr("trusted"));
}

TEST_F(Privacy, ABudgetAtHomeHoldsOverRuns) {
  make_folder(folder_ / "owner");
  write_file_atomically(folder_ / "owner" / "budget.toml", "epsilon = 3.5\ndelta = 1e-3\nadjacency = \"replace\"\n");
  const std::string run = "run " + local("private.toml") + " --home owner --quiet ";
  ASSERT_EQ(sotto(run + "--out first").exit_code, 0);
  const Result second = sotto("run private.toml --home owner --set federation.lr=0.2 --out second");
  ASSERT_EQ(second.exit_code, 0) << second.err;
  EXPECT_THAT(second.err, HasSubstr("abstains from round 1 on: at its home " + (folder_ / "owner").string()));
  EXPECT_EQ(summary("second")["privacy"]["ledger_rows"], 0);

  const json shown = json::parse(sotto("ledger show owner --json").out);
  EXPECT_EQ(shown["rows"], 15);
  EXPECT_EQ(shown["runs"].size(), 1U);
  EXPECT_EQ(shown["runs"][0]["rows"], 15);
  EXPECT_EQ(shown["clients"].size(), 5U);
  EXPECT_GT(shown["clients"][0]["spent"], 2.9);
  EXPECT_NEAR(shown["clients"][0]["left"].get<double>(), 3.5 - shown["clients"][0]["spent"].get<double>(), 1e-9);
  EXPECT_THAT(sotto("ledger show owner").out, HasSubstr("over all runs: ε = 3.5 at δ = 0.001"));
  EXPECT_THAT(sotto("ledger verify owner").out, HasSubstr("15 rows, chain intact, budgets kept over all runs"));

  expect_user_error(run + "--set seed=2 --out other", "deals them otherwise");
  expect_user_error(run + "--set privacy.adjacency=zero-out --out other", "promises replace of a record");
  expect_user_error("run config.toml --home owner --out other", "nothing can be proven");
  expect_user_error("run first --resume", "add --home " + (folder_ / "owner").string());
  write_file_atomically(folder_ / "table.csv", read_file(folder_ / "table.csv") + "0.5,0.5,0.5,1\n");
  expect_user_error(run + "--out other", "are others; use another home");
  EXPECT_FALSE(fs::exists(folder_ / "other"));

  change_ledger("owner", "UPDATE releases SET noise = noise * 2 WHERE client = 3");
  expect_user_error("ledger verify owner", "tampered");
  fs::remove(folder_ / "owner" / "ledger.sqlite");
  expect_user_error("ledger show owner", "has lost its ledger");
  expect_user_error("run private.toml --home missing --out other", "is not a home");
}

TEST_F(Privacy, ASweepSaysWhatItsChoiceCosts) {
  const Result result = sotto("sweep " + local("private.toml") + " --grid federation.lr=0.1,0.2 --seeds 2 --out swept");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("choosing by this table: all 4 runs together cost simulated ε "));
  const json table = json::parse(read_file(folder_ / "swept" / "sweep.json"));
  const json& selection = table["selection"];
  const double one = table["cells"][0]["proven_epsilon"];
  EXPECT_EQ(selection["runs"], 4);
  EXPECT_EQ(selection["observer"], "server");
  EXPECT_GT(selection["all_epsilon"], 1.5 * one);
  EXPECT_GT(selection["best_epsilon"], one);
  EXPECT_LT(selection["best_epsilon"], selection["all_epsilon"]);
  ASSERT_EQ(sotto("sweep config.toml --set rounds=1 --seeds 2 --out clear --quiet").exit_code, 0);
  EXPECT_EQ(json::parse(read_file(folder_ / "clear" / "sweep.json"))["selection"], nullptr);
}

TEST_F(Privacy, PrivateSelectionShowsTheBestAlone) {
  const std::string sweep = "sweep " + local("secure.toml", "noise = \"secure\"\n") +
                            " --private-selection --grid federation.lr=0.05,0.2 --trials 3 --score-noise 0.2 ";
  const Result result = sotto(sweep + "--out chosen --json");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const json chosen = json::parse(result.out);
  EXPECT_EQ(chosen, json::parse(read_file(folder_ / "chosen" / "selection.json")));
  EXPECT_GT(chosen["epsilon"], 3.0) << "more than one run's";
  EXPECT_TRUE(chosen["best"]["settings"].contains("federation.lr"));
  EXPECT_TRUE(fs::exists(folder_ / "chosen" / "best" / "summary.json"));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_ / "chosen"), fs::directory_iterator()), 2);
  EXPECT_EQ(sotto("ledger verify chosen/best").exit_code, 0);

  expect_user_error(sweep + "--out chosen", "exists already");
  expect_user_error(sweep + "--out other --seeds 3", "--seeds means nothing");
  expect_user_error("sweep secure.toml --private-selection --out other --trials 1", "mean number of trials");
  expect_user_error("sweep secure.toml --private-selection --out other --score-noise 0", "--score-noise");
  expect_user_error(sweep + "--out other --set privacy.noise=replay", "privacy.noise = \"secure\"");
  expect_user_error("sweep config.toml --private-selection --out other", "state [privacy]");
  expect_user_error("sweep config.toml --trials 3 --out other", "is for --private-selection");
  expect_user_error(sweep + "--home owner --out other", "sotto run --home owner");
  expect_user_error("sweep config.toml --seeds 2 --home owner --out other", "cannot be charged to the home owner");
  EXPECT_FALSE(fs::exists(folder_ / "other"));
}

// How many records a client is tested on is as secret as the client: the score is a share of clients, not of records.
TEST_F(Privacy, PrivateSelectionOfClientsCountsClients) {
  write("central.toml", "rounds = 2", "",
        "[method]\nname = \"dp-fedavg\"\n[privacy]\nepsilon = 3.0\ndelta = 1e-2\nadjacency = \"add-remove\"\nunit = "
        "\"client\"\nobserver = \"clients\"\nnoise = \"secure\"\n");
  const Result result = sotto(
      "sweep central.toml --private-selection --grid federation.lr=0.05,0.2 --trials 2 --score-noise 1 --out chosen "
      "--json");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const json chosen = json::parse(result.out);
  EXPECT_EQ(chosen["score"]["what"], "accuracy");
  EXPECT_GT(chosen["epsilon"], 3.0);
  const double points = chosen["best"]["score"].get<double>() * 5 * 1000;
  EXPECT_NEAR(points, std::round(points), 1e-6) << "thousandths of five clients";
}

TEST_F(Privacy, BadTermsGetOneLineAndExitTwo) {
  local("private.toml");
  expect_user_error("run private.toml --set privacy.epsilon=0", "privacy.epsilon");
  expect_user_error("run private.toml --set privacy.epsilon=-1", "privacy.epsilon");
  expect_user_error("run private.toml --set privacy.delta=0", "privacy.delta");
  expect_user_error("run private.toml --set privacy.delta=1", "privacy.delta");
  expect_user_error("run private.toml --set privacy.budgets=[1,0]", "privacy.budgets");
  expect_user_error("run private.toml --set method.clip=0", "method.clip");
  expect_user_error("run private.toml --set privacy.unit='\"client\"'", "privacy.unit = \"record\"");
  expect_user_error("ledger show missing", "not a run directory");
  EXPECT_FALSE(fs::exists(folder_ / "runs"));
}

TEST_F(Privacy, ALargeDeltaIsWarnedOf) {
  const Result result = sotto("plan " + local("private.toml") + " --set privacy.delta=0.1");
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.err, HasSubstr("more than 1/"));
}

TEST_F(Privacy, ATableWithoutADeclaredSchemaProvesNothing) {
  local("private.toml");
  fs::remove(folder_ / "table.schema.json");
  expect_user_error("run private.toml --out run", "data.schema");
  expect_user_error("plan private.toml", "data.schema = \"inferred\"");

  const std::string inferred = "private.toml --json --set data.schema=inferred ";
  const json plan = json::parse(sotto("plan " + inferred).out);
  EXPECT_THAT(plan["releases"][0]["why_unproven"].get<std::string>(), HasSubstr("declare data.schema"));
  {
    const Elsewhere here(folder_);
    EXPECT_THAT(cli::output_of(words_of("plan private.toml --set data.schema=inferred")), HasSubstr("  ∞  "));
  }
  const Result result = sotto("run --out run " + inferred);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const json privacy = json::parse(result.out)["privacy"];
  EXPECT_EQ(privacy["proven_epsilon"], nullptr);
  EXPECT_THAT(privacy["why_unproven"].get<std::string>(), HasSubstr("declare data.schema"));
  EXPECT_THAT(sotto("ledger show run").out, HasSubstr("data.schema"));
}

TEST_F(Privacy, ASchemaIsWrittenFromWhatIsStated) {
  local("private.toml");
  fs::remove(folder_ / "table.schema.json");
  const std::string show = "data show table.csv --schema ";
  write_file_atomically(folder_ / "open.toml", sotto(show).out);
  expect_user_error("plan private.toml --set data.schema=open.toml", "the range of 'a' is not stated");
  const Result stated =
      sotto(show + "--from open.toml --range a=-0.7:2.7 --range b=-0.7:2.7 --range c=-1:1 --values label=0,1,2");
  ASSERT_EQ(stated.exit_code, 0) << stated.err;
  write_file_atomically(folder_ / "stated.toml", stated.out);
  const json plan = json::parse(sotto("plan private.toml --json --set data.schema=stated.toml").out);
  EXPECT_EQ(plan["releases"][0]["why_unproven"], nullptr);
  expect_user_error("data show table.csv --range a=0:1", "add --schema");
  expect_user_error("data show fashion-mnist --schema", "no table of yours");
  expect_user_error(show + "--range d=0:1", "no column 'd'");
}

}  // namespace
}  // namespace sotto
