// The program under test, run as its users run it, in a folder of its own with a small table to train on.
#pragma once

#include "base/files.h"
#include "base/random.h"
#include "base/text.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

namespace sotto {

using nlohmann::json;
using ::testing::HasSubstr;

struct Result {
  int exit_code;
  std::string out;
  std::string err;
};

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

  void expect_user_error(const std::string& arguments, const std::string& expected) const {
    const Result result = sotto(arguments);
    EXPECT_EQ(result.exit_code, 2) << arguments << "\n" << result.err;
    EXPECT_THAT(result.err, HasSubstr(expected)) << arguments;
    EXPECT_EQ(error_lines(result.err), 1) << result.err;
    EXPECT_EQ(result.out, "");
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
