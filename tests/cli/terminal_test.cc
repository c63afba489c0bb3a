// What a run looks like: on terminals of different widths, without colours, and where there is no terminal.
#include "program.h"

#include <pty.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <array>

namespace sotto {
namespace {

class Terminal : public Program {
 protected:
  Terminal() {
    write("private.toml", "rounds = 4", "",
          "[federation]\nbatch = 4\nlocal_epochs = 30\n[method]\nname = \"ldp-fedavg\"\n"
          "[privacy]\nepsilon = 3.0\ndelta = 1e-3\nadjacency = \"replace\"\n");
  }

  // Everything the program writes to a terminal of so many columns.
  std::string on_terminal(unsigned short columns, const std::string& environment) const {
    winsize size = {};
    size.ws_row = 24;
    size.ws_col = columns;
    int terminal = -1;
    const pid_t child = ::forkpty(&terminal, nullptr, nullptr, &size);
    if (child == 0) {
      const std::string command =
          fmt::format("cd {} && rm -rf run && exec env -u NO_COLOR {} {} run private.toml --threads 1 --out run",
                      folder_.string(), environment, SOTTO_PROGRAM);
      ::execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
      ::_exit(3);
    }
    std::string output;
    std::array<char, 4096> buffer{};
    for (ssize_t count = 0; (count = ::read(terminal, buffer.data(), buffer.size())) > 0;) {
      output.append(buffer.data(), static_cast<size_t>(count));
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    ::close(terminal);
    EXPECT_EQ(WEXITSTATUS(status), 0) << output;
    return output;
  }

  // What stands on one line at a time, without control sequences.
  static std::vector<std::string> lines_of(const std::string& output) {
    std::string plain;
    for (size_t i = 0; i < output.size(); ++i) {
      if (output[i] != '\x1b') {
        plain += output[i] == '\r' ? '\n' : output[i];
        continue;
      }
      while (i < output.size() && std::isalpha(static_cast<unsigned char>(output[i])) == 0) ++i;
    }
    return split(plain, '\n');
  }

  static std::string table_header(const std::string& output) {
    for (const std::string& line : lines_of(output)) {
      if (line.find("accuracy %") != std::string::npos) return line;
    }
    return "";
  }

  static bool is_coloured(const std::string& output) {
    for (size_t at = output.find("\x1b["); at != std::string::npos; at = output.find("\x1b[", at + 1)) {
      const size_t end = output.find_first_not_of("0123456789;", at + 2);
      if (end != std::string::npos && output[end] == 'm') return true;
    }
    return false;
  }
};

TEST_F(Terminal, ABarWithTimeLeftAndTheTableFitTheWidth) {
  for (const unsigned short columns : {40, 80, 120}) {
    const std::string output = on_terminal(columns, "TERM=xterm");
    EXPECT_THAT(output, HasSubstr("█"));
    for (const std::string& line : lines_of(output)) {
      const bool drawn = line.find("░") != std::string::npos || line.find("█") != std::string::npos;
      EXPECT_LT(drawn ? display_width(line) : 0, columns) << line;
    }
    const std::string header = table_header(output);
    EXPECT_THAT(header, HasSubstr("simulated ε"));
    EXPECT_LT(display_width(header), columns) << header;
    EXPECT_EQ(header.find("left") != std::string::npos, columns == 120) << header;
    if (columns == 40) continue;
    EXPECT_THAT(output, HasSubstr(" s left"));
    EXPECT_THAT(output, HasSubstr(", ε "));
    EXPECT_THAT(output, HasSubstr(" of 3"));
  }
}

TEST_F(Terminal, ColoursAreLeftOutWhereTheyAreNotWanted) {
  EXPECT_TRUE(is_coloured(on_terminal(100, "TERM=xterm")));
  EXPECT_TRUE(is_coloured(on_terminal(100, "TERM=xterm NO_COLOR="))) << "an empty one says nothing";
  const std::string plain = on_terminal(100, "TERM=xterm NO_COLOR=1");
  EXPECT_FALSE(is_coloured(plain));
  EXPECT_THAT(plain, HasSubstr("█")) << "the bar stays";
  EXPECT_EQ(on_terminal(100, "TERM=dumb").find('\x1b'), std::string::npos);
}

TEST_F(Terminal, WithoutATerminalThereAreOnlyPlainLines) {
  const Result result = sotto("run private.toml --threads 1 --out run");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.err.find_first_of("\x1b\r"), std::string::npos);
  EXPECT_EQ(result.err.find("█"), std::string::npos);
  const std::string header = table_header(result.err);
  for (const char* column : {"round", "uploads", "± std", "claimed ε", "simulated ε", "left"}) {
    EXPECT_THAT(header, HasSubstr(column));
  }
}

// A row's cell under "simulated ε", the third from the end: cells are two spaces apart or more.
std::string proven_in(std::string row) {
  std::string cell;
  for (int i = 0; i < 3; ++i) {
    row.erase(row.find_last_not_of(' ') + 1);
    const size_t before = row.rfind("  ");
    cell = row.substr(before == row.npos ? 0 : before + 2);
    row.erase(row.size() - cell.size());
  }
  return cell;
}

TEST_F(Terminal, RowsEndAtTheEpsilonOfTheSummary) {
  const Result result = sotto("run private.toml --threads 1 --out run");
  const std::string proven = fmt::format("{:.4g}", summary("run")["privacy"]["proven_epsilon"]["max"].get<double>());
  std::vector<std::string> rows;
  bool in_table = false;
  for (const std::string& line : split(result.err, '\n')) {
    if (in_table && !line.empty()) rows.push_back(line);
    in_table = in_table || line.find("accuracy %") != std::string::npos;
  }
  ASSERT_FALSE(rows.empty());
  EXPECT_EQ(proven_in(rows.back()), proven) << rows.back();
  EXPECT_NE(proven_in(rows.front()), proven) << "less was spent in the first round: " << rows.front();
}

TEST_F(Terminal, RunsWithoutTermsHaveNoEpsilonColumn) {
  const Result result = sotto("run config.toml --out run --set rounds=2");
  EXPECT_EQ(table_header(result.err).find("ε"), std::string::npos);
}

}  // namespace
}  // namespace sotto
