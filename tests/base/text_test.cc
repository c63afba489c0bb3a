#include "base/text.h"

#include "base/natural_order.h"
#include "base/shell_word.h"
#include "base/table.h"
#include "base/utf8.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>

namespace sotto {
namespace {

using Strings = std::vector<std::string>;

TEST(Split, KeepsEmptyParts) {
  EXPECT_EQ(split("a,,b,", ','), (Strings{"a", "", "b", ""}));
  EXPECT_EQ(split("", ','), Strings{""});
}

TEST(Join, PutsSeparatorsBetween) {
  EXPECT_EQ(join({"a", "b", "c"}, ", "), "a, b, c");
  EXPECT_EQ(join({}, ", "), "");
}

TEST(Trim, RemovesSpaceAtBothEnds) {
  EXPECT_EQ(trim(" \t a b\r\n"), "a b");
  EXPECT_EQ(trim(" \n"), "");
}

TEST(DisplayWidth, CountsCharacters) {
  EXPECT_EQ(display_width("abc"), 3u);
  EXPECT_EQ(display_width("ε≤∞"), 3u);
}

TEST(ShellWord, IsOneWordAndThatText) {
  EXPECT_EQ(shell_word("runs/first-1.5"), "runs/first-1.5");
  EXPECT_EQ(shell_word("Läufe/ε=1"), "Läufe/ε=1");
  EXPECT_EQ(shell_word(""), "''");
  for (const std::string text : {"sp ace", "it's", "$HOME", "a;b", "*", "a\\b", "\"", "'"}) {
    const std::string word = shell_word(text);
    FILE* shell = ::popen(("printf %s " + word).c_str(), "r");
    std::array<char, 64> said = {};
    const size_t size = std::fread(said.data(), 1, said.size(), shell);
    ::pclose(shell);
    EXPECT_EQ(std::string(said.data(), size), text) << word;
  }
}

TEST(Nearest, FindsWhatWasMeantAndNothingElse) {
  const Strings names{"fashion-mnist", "mnist", "cifar10"};
  EXPECT_EQ(nearest("fashon-mnist", names), "fashion-mnist");
  EXPECT_EQ(nearest("cifar-10", names), "cifar10");
  EXPECT_EQ(nearest("heart-disease", names), "");
  EXPECT_EQ(did_you_mean("mnst", names), " (did you mean 'mnist'?)");
  EXPECT_EQ(did_you_mean("zzzzzzzz", names), "");
}

TEST(Table, AlignsNumbersRightAndTextLeft) {
  Table table({"name", "ε"});
  table.add_row({"α", "1.5"});
  table.add_row({"longer", "10"});
  EXPECT_EQ(table.to_string(), "name      ε\n──────  ───\nα       1.5\nlonger   10\n");
}

TEST(Table, SpreadsCellsOverLinesBetweenWordsWhereItMust) {
  Table table({"name", "what it is", "claimed ε (server)"});
  table.add_row({"first", "a sentence that is far too long for the line", "2.00"});
  table.add_row({"second", "short", "10.00"});
  for (const std::string& line : split(table.to_string(40), '\n')) EXPECT_LE(display_width(line), 40U) << line;
  EXPECT_EQ(table.to_string(40),
            "name    what it is             claimed ε\n"
            "                                (server)\n"
            "──────  ───────────────  ───────────────\n"
            "first   a sentence that             2.00\n"
            "        is far too long\n"
            "        for the line\n"
            "second  short                      10.00\n");
  EXPECT_EQ(table.to_string(500), table.to_string());
  Table path({"path"});
  path.add_row({"/a/word/that/cannot/be/broken"});
  EXPECT_THAT(path.to_string(10), ::testing::HasSubstr("/a/word/that/cannot/be/broken\n"));
}

TEST(NaturalOrder, ReadsDigitsAsNumbers) {
  std::vector<std::string> names = {"client 10", "client 2", "b", "client 1", "a2b10", "a2b9", "client 02", ""};
  std::sort(names.begin(), names.end(), naturally_before);
  EXPECT_THAT(names,
              ::testing::ElementsAre("", "a2b9", "a2b10", "b", "client 1", "client 02", "client 2", "client 10"));
  EXPECT_FALSE(naturally_before("same 1", "same 1"));
  EXPECT_TRUE(naturally_before("99999999999999999999998", "99999999999999999999999"));
}

TEST(Table, BlankCellsForWhatIsMissing) {
  Table table({"a", "b", "c"});
  table.add_row({"x"});
  EXPECT_EQ(table.to_string(), "a  b  c\n─  ─  ─\nx\n");
}

TEST(Table, WordsAmongNumbersMakeAColumnText) {
  Table table({"value"});
  table.add_row({"12"});
  table.add_row({"none"});
  EXPECT_EQ(table.to_string(), "value\n─────\n12\nnone\n");
}

TEST(IsUtf8, KnowsLatin1AndCutCharacters) {
  for (const char* good : {"", "plain", "ε ≥ 0", "\xf0\x9f\x98\x80"}) EXPECT_TRUE(is_utf8(good)) << good;
  for (const char* bad : {"caf\xe9", "\xce", "\xff", "\xc0\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe2\x89"}) {
    EXPECT_FALSE(is_utf8(bad)) << bad;
  }
}

TEST(Table, IsPrintedForDocumentsToo) {
  Table table({"method", "ε", "a|b"});
  table.add_row({"dp_fedavg & co", "1.5", "x, \"y\""});
  table.add_row({"local", "∞", ""});
  EXPECT_EQ(table.to_markdown(),
            "| method | ε | a\\|b |\n|---|---:|---|\n| dp_fedavg & co | 1.5 | x, \"y\" |\n| local | ∞ |  |\n");
  EXPECT_EQ(table.to_csv(), "method,ε,a|b\ndp_fedavg & co,1.5,\"x, \"\"y\"\"\"\nlocal,∞,\n");
  EXPECT_EQ(table.to_latex(),
            "\\begin{tabular}{lrl}\n\\hline\nmethod & $\\varepsilon$ & a|b \\\\\n\\hline\n"
            "dp\\_fedavg \\& co & 1.5 & x, \"y\" \\\\\nlocal & $\\infty$ &  \\\\\n\\hline\n\\end{tabular}\n");
}

}  // namespace
}  // namespace sotto
