// Clumsy hands on the command line: what was written, and what could have been, in one line.
#include "program.h"

namespace sotto {
namespace {

class Clumsy : public Program {};

TEST_F(Clumsy, MistypedCommandsAndOptionsAreNamed) {
  expect_user_error("ledger shwo run",
                    "there is no 'sotto ledger shwo' (did you mean 'show'?) (see sotto ledger --help)");
  expect_user_error("ledger", "sotto ledger: say which: show, verify");
  expect_user_error("list", "sotto list: say which: methods");
  expect_user_error("raport x", "there is no command 'raport' (did you mean 'report'?)");
  expect_user_error("run config.toml --rsume",
                    "there is no option --rsume (did you mean '--resume'?) (see sotto run --help)");
  expect_user_error("run config.toml twice", "'twice' is one word too many");
  expect_user_error("report run --format xml", "must be one of text, markdown, latex, csv, not 'xml'");
  expect_user_error("sweep config.toml --seeds 0", "must be a number from 1 to 10000, not 0");
  expect_user_error("sweep config.toml --seeds many", "many");
}

TEST_F(Clumsy, FilesThatAreNoConfigsAreNamed) {
  fs::create_directories(folder_ / "empty folder");
  expect_user_error("run 'empty folder'", "a folder without config.toml");
  write_file_atomically(folder_ / "empty.toml", std::string_view("\n"));
  expect_user_error("run empty.toml", "empty.toml is empty");
  expect_user_error("run /dev/null", "/dev/null is empty");
  expect_user_error("plan /dev/zero", "does not end");
  expect_user_error("plan config.toml --picture partition.jpg", "NAME.png");
  EXPECT_FALSE(fs::exists(folder_ / "runs"));
}

TEST_F(Clumsy, GridsHoldEveryPointOnce) {
  expect_user_error("sweep config.toml --grid rounds=1,2 --grid rounds=3", "rounds has values already");
  expect_user_error("sweep config.toml --grid rounds=1,2,1", "a value is there twice");
}

TEST_F(Clumsy, TheRunsOfASweepAreNamedForPeople) {
  const Result sweep = sotto("sweep config.toml --set rounds=1 --seeds 2 --jobs 2 --out 'sweep one' --grid name=a,b");
  ASSERT_EQ(sweep.exit_code, 0) << sweep.err;
  std::vector<std::string> runs;
  for (const auto& entry : fs::directory_iterator(folder_ / "sweep one")) {
    if (entry.is_directory()) runs.push_back(entry.path().filename().string());
  }
  ASSERT_EQ(runs.size(), 4U);
  for (const std::string& run : runs) EXPECT_THAT(run, ::testing::ContainsRegex("name=[ab]-seed[12]-[0-9a-f]{16}"));
}

TEST_F(Clumsy, AChangedConfigIsNoticedInReports) {
  ASSERT_EQ(sotto("run config.toml --set rounds=1 --out run --quiet").exit_code, 0);
  EXPECT_EQ(sotto("report run").err, "");
  std::string text = read_file(folder_ / "run" / "config.toml");
  text.replace(text.find("rounds = 1"), 10, "rounds = 7");
  write_file_atomically(folder_ / "run" / "config.toml", text);
  for (const char* form : {"report run", "report run -o page.html"}) {
    const Result report = sotto(form);
    EXPECT_EQ(report.exit_code, 0) << report.err;
    EXPECT_THAT(report.err, HasSubstr("run/config.toml is not what it was run with"));
  }
}

TEST_F(Clumsy, ClosingLinesFitATerminal) {
  const Result run = sotto("run config.toml --set rounds=1 --out run --quiet");
  for (const std::string& line : split(run.out, '\n')) EXPECT_LE(display_width(line), 80U) << line;
  for (const char* command : {"data list", "account --noise-multiplier 1 --steps 10 --delta 1e-5"}) {
    for (const std::string& line : split(sotto(command).out, '\n')) {
      EXPECT_LE(display_width(line), line.find('/') == line.npos ? 80U : 200U) << line;  // paths are not broken
    }
  }
}

}  // namespace
}  // namespace sotto
