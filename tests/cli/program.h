// The program under test, run as its users run it, in a folder of its own with a small table to train on.
#pragma once

#include "base/error.h"
#include "base/files.h"
#include "base/interrupt.h"
#include "base/random.h"
#include "base/text.h"
#include "cli/program.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/wait.h>
#include <unistd.h>
#include <wordexp.h>

#include <cstdlib>
#include <string>
#include <vector>

namespace sotto {

using nlohmann::json;
using ::testing::HasSubstr;

struct Result {
  int exit_code;
  std::string out;
  std::string err;
};

// While it lives, this process stands in the folder, with the environment that the program under test gets.
class Elsewhere {
 public:
  explicit Elsewhere(const fs::path& folder) : before_(fs::current_path()) {
    fs::current_path(folder);
    ::setenv("SOTTO_DATA", "", 1);
    ::setenv("SOTTO_HOME", (folder / "home").c_str(), 1);
    leave_signals_alone();
  }
  ~Elsewhere() { fs::current_path(before_); }
  Elsewhere(const Elsewhere&) = delete;
  Elsewhere& operator=(const Elsewhere&) = delete;

 private:
  fs::path before_;
};

// As a shell splits them.
inline std::vector<std::string> words_of(const std::string& arguments) {
  wordexp_t words = {};
  if (::wordexp(arguments.c_str(), &words, WRDE_NOCMD) != 0) ADD_FAILURE() << "no command line: " << arguments;
  std::vector<std::string> result(words.we_wordv, words.we_wordv + words.we_wordc);
  ::wordfree(&words);
  return result;
}

class Program : public ::testing::Test {
 protected:
  Program() {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    RandomStream stream(1, "table");
    std::string rows = "a,b,c,label\n";
    for (int i = 0; i < 300; ++i) {
      const int label = i % 3;
      rows += fmt::format("{:.4f},{:.4f},{:.4f},{}\n", stream.normal() + (label == 0 ? 3 : 0),
                          stream.normal() + (label == 1 ? 3 : 0), stream.normal(), label);
    }
    write_file_atomically(folder_ / "table.csv", rows);
    write_file_atomically(folder_ / "table.schema.json", std::string_view(kSchema));
    write("config.toml", "");
  }
  ~Program() override { fs::remove_all(folder_); }

  // A config on the table above; `more` comes first, so that it may hold root keys.
  fs::path write(const std::string& name, const std::string& more, const std::string& data = "",
                 const std::string& tail = "") {
    write_file_atomically(folder_ / name, more + "\n[data]\nname = \"custom\"\npath = \"" +
                                              (folder_ / "table.csv").string() + "\"\nclients = 5\n" + data +
                                              "\n[model]\nname = \"logistic\"\n" + tail);
    return folder_ / name;
  }

  Result sotto(const std::string& arguments, const std::string& input = "") const {
    const fs::path in = folder_ / "stdin";
    write_file_atomically(in, input);
    const fs::path out = folder_ / "stdout";
    const fs::path err = folder_ / "stderr";
    const int status =
        std::system(fmt::format("cd {} && SOTTO_DATA= SOTTO_HOME={}/home {} {} <{} >{} 2>{}", folder_.string(),
                                folder_.string(), SOTTO_PROGRAM, arguments, in.string(), out.string(), err.string())
                        .c_str());
    return {WEXITSTATUS(status), read_file(out), read_file(err)};
  }

  // In this process: starting one takes longer than being refused. That a refusal is a line and exit code 2 is tested
  // once, for all of them.
  void expect_user_error(const std::string& arguments, const std::string& expected) const {
    const Elsewhere here(folder_);
    std::string said;
    try {
      cli::output_of(words_of(arguments));
      ADD_FAILURE() << "not refused: " << arguments;
    } catch (const UserError& error) {
      said = error.what();
    } catch (const fs::filesystem_error& error) {
      said = error.path1().string() + ": " + error.code().message();
    } catch (const std::exception& error) {
      ADD_FAILURE() << arguments << ": " << error.what();
    }
    EXPECT_THAT(said, HasSubstr(expected)) << arguments;
    EXPECT_EQ(said.find('\n'), std::string::npos) << said;
  }

  // Lines that say what is wrong; notes about the data may stand before them.
  static int64_t error_lines(const std::string& err) {
    int64_t count = 0;
    for (const std::string& line : split(err, '\n')) count += line.starts_with("sotto: ") ? 1 : 0;
    return count;
  }

  // Of the table above and of others like it. Private runs need one.
  static constexpr const char* kSchema = R"({"columns": [{"name": "a", "kind": "number", "range": [-0.7, 2.7]},
    {"name": "b", "kind": "number", "range": [-0.7, 2.7]}, {"name": "c", "kind": "number", "range": [-1, 1]},
    {"name": "label", "kind": "label", "values": ["0", "1", "2"]}]})";

  json summary(const std::string& run) const { return json::parse(read_file(folder_ / run / "summary.json")); }

  const fs::path folder_ = fs::temp_directory_path() / fmt::format("sotto-cli-{}", ::getpid());
};

}  // namespace sotto
