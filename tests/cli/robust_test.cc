// What breaks on its way: files cut short, names that are not ASCII, tables that hold too little, numbers that are none.
// In this process, since starting one takes longer than all that is tried here.
#include "../data/make_files.h"
#include "program.h"

namespace sotto {
namespace {

class Robust : public Program {
 protected:
  std::string out(const std::string& arguments) const {
    const Elsewhere here(folder_);
    return cli::output_of(words_of(arguments));
  }

  // Whether it is refused. Anything but a result or one line for the user is a failure.
  bool refused(const std::string& arguments) const {
    try {
      out(arguments);
      return false;
    } catch (const UserError& error) {
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
      return true;
    } catch (const std::exception& error) {
      ADD_FAILURE() << arguments << ": " << error.what();
      return true;
    }
  }

  // Class folders with one image each.
  void images(const std::vector<std::string>& classes) const {
    for (const std::string& name : classes) {
      test::write_bytes(folder_ / "images" / name / "1.png", test::plain_png(8, 8, {200}));
      test::write_bytes(folder_ / "images" / name / "2.png", test::plain_png(8, 8, {20}));
    }
    write_file_atomically(
        folder_ / "images.toml",
        std::string("rounds = 1\n[data]\nname = \"custom\"\npath = \"images\"\nclients = 1\n[model]\n") +
            "name = \"logistic\"\n");
  }
};

TEST_F(Robust, NamesThatAreNotAsciiGoThroughEverything) {
  fs::create_directories(folder_ / "Läufe");
  fs::rename(folder_ / "table.csv", folder_ / "Läufe" / "größe ≤ 3.csv");
  fs::rename(folder_ / "table.schema.json", folder_ / "Läufe" / "größe ≤ 3.schema.json");
  out("run config.toml --quiet --set rounds=1 --set 'data.path=Läufe/größe ≤ 3.csv' --out 'Läufe/erster Lauf'");
  EXPECT_THAT(out("report 'Läufe/erster Lauf'"), HasSubstr("fedavg"));
  EXPECT_THAT(out("ledger verify 'Läufe/erster Lauf'"), HasSubstr("summary.json"));
  out("export 'Läufe/erster Lauf' --csv 'Läufe/ε.csv' --quiet");
  EXPECT_THAT(read_file(folder_ / "Läufe" / "ε.csv"), HasSubstr("accuracy"));
  out("report 'Läufe/erster Lauf' -o 'Läufe/Bericht.html' --quiet");
  EXPECT_THAT(read_file(folder_ / "Läufe" / "Bericht.html"), HasSubstr("erster Lauf"));
}

TEST_F(Robust, ClassFoldersInLatin1AreNamedBeforeAnythingIsTrained) {
  images({"gut", "b\xf6se"});
  expect_user_error("run images.toml --out run", "UTF-8");
  EXPECT_FALSE(fs::exists(folder_ / "run"));
}

// Every file of a finished run, cut in half or emptied, under every command that reads runs.
TEST_F(Robust, FilesCutShortAreRefusedInOneLine) {
  write("private.toml", "rounds = 2", "",
        "[method]\nname = \"ldp-fedavg\"\n[privacy]\nepsilon = 3.0\ndelta = 1e-3\nadjacency = \"replace\"\n");
  out("run private.toml --quiet --out whole");
  const std::vector<std::string> commands = {
      "report run",         "report run --clients", "report run -o page.html --quiet",
      "ledger show run",    "ledger verify run",    "export run --csv -",
      "export run -o m.pt", "predict run --test 1", "run run --resume --quiet"};
  for (const char* name : {"config.toml", "metrics.jsonl", "summary.json", "ledger.sqlite", "ledger.head"}) {
    const std::string whole = read_file(folder_ / "whole" / name);
    for (const size_t kept : {whole.size() / 2, size_t{0}}) {
      int64_t noticed = 0;
      for (const std::string& command : commands) {
        fs::remove_all(folder_ / "run");
        fs::copy(folder_ / "whole", folder_ / "run", fs::copy_options::recursive);
        write_file_atomically(folder_ / "run" / name, whole.substr(0, kept));
        noticed += refused(command) ? 1 : 0;
      }
      EXPECT_GT(noticed, 0) << name << " of " << kept << " bytes";
    }
  }
}

TEST_F(Robust, AFolderThatWasOnlyBegunIsNoRun) {
  fs::create_directories(folder_ / "half");
  write_file_atomically(folder_ / "half" / "config.toml", std::string_view(""));
  for (const char* command : {"report half", "report half -o page.html", "ledger show half", "run half --resume"}) {
    expect_user_error(command, "config.toml");
  }
}

TEST_F(Robust, OneRecordOfEachClassIsEnoughToRun) {
  write_file_atomically(folder_ / "table.csv", std::string_view("a,b,c,label\n1,2,3,0\n3,1,2,1\n2,3,1,2\n"));
  EXPECT_THAT(out("run config.toml --quiet --set rounds=1 --set data.clients=1 --out run"), HasSubstr("accuracy"));
}

// Scores that are not numbers, of two classes, once kept the area under the curve busy for ever.
TEST_F(Robust, ScoresThatAreNoNumbersEndInAResult) {
  std::string rows = "a,b,c,label\n";
  for (int i = 0; i < 60; ++i) rows += fmt::format("{},{},1,{}\n", i % 7, i % 5, i % 2);
  write_file_atomically(folder_ / "table.csv", rows);
  fs::remove(folder_ / "table.schema.json");
  const std::string printed = out(
      "run config.toml --quiet --set rounds=2 --set federation.lr=1e37 --set federation.batch=1000 --json --out run");
  EXPECT_EQ(json::parse(printed)["rounds"], 2);
}

}  // namespace
}  // namespace sotto
