// CSV, gzip, archives and file trees.
#include "../data/make_files.h"
#include "../support/expect_user_error.h"
#include "../support/temp_folder.h"
#include "data/file_tree.h"
#include "io/archive.h"
#include "io/csv.h"
#include "io/gzip.h"

#include <gtest/gtest.h>

namespace sotto::io {
namespace {

using namespace sotto::test;

TEST(Csv, FollowsRfc4180) {
  const auto rows = parse_csv("a,\"b, \"\"c\"\"\",\"two\r\nlines\"\r\n 1 ,,x\n", "file");
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0], (CsvRow{"a", "b, \"c\"", "two\r\nlines"}));
  EXPECT_EQ(rows[1], (CsvRow{"1", "", "x"}));
}

TEST(Csv, TakesFilesWithoutFinalNewlineAndWithByteOrderMark) {
  EXPECT_EQ(parse_csv("\xEF\xBB\xBFx,y", "file"), (std::vector<CsvRow>{{"x", "y"}}));
}

TEST(Csv, NamesTheRowOfAMistake) {
  EXPECT_USER_ERROR(parse_csv("a,b\nc,d\ne\n", "f.csv"), "f.csv, row 3: 1 cells where the first row has 2");
  EXPECT_USER_ERROR(parse_csv("a,b\n\"c,d\n", "f.csv"), "f.csv, row 2: a quote");
  EXPECT_USER_ERROR(parse_csv("", "f.csv"), "f.csv is empty");
}

TEST(Csv, ANulIsNoText) {
  using namespace std::string_literals;
  EXPECT_USER_ERROR(parse_csv("a,b\n1,2\n3,4\0\n"s, "t.csv"), "t.csv, line 3: a NUL character");
}

TEST(Csv, KnowsMissingValuesAndNumbers) {
  for (const char* cell : {"", "?", "NA", "n/a", "NaN", "null"}) EXPECT_TRUE(is_missing(cell)) << cell;
  EXPECT_FALSE(is_missing("0"));
  double value = 0;
  EXPECT_TRUE(parse_number("-1.5e3", value));
  EXPECT_EQ(value, -1500);
  EXPECT_TRUE(parse_number(".7", value));
  EXPECT_TRUE(parse_number("+2", value));
  for (const char* cell : {"", "x", "1x", "inf", "nan", "1,5", "--1"}) EXPECT_FALSE(parse_number(cell, value)) << cell;
}

TEST(Gzip, InflatesSeveralMembers) {
  const std::string large(2'000'000, 'x');
  EXPECT_EQ(gunzip(gzipped(large) + gzipped("end"), "f"), large + "end");
  EXPECT_EQ(gunzip(gzipped(""), "f"), "");
}

TEST(Gzip, NoticesTruncationAndCorruption) {
  std::string text;
  for (int i = 0; i < 5000; ++i) text += std::to_string(i * 7919);
  const std::string whole = gzipped(text);
  for (const size_t cut : {size_t{3}, size_t{12}, whole.size() / 2, whole.size() - 1}) {
    EXPECT_USER_ERROR(gunzip(whole.substr(0, cut), "f.gz"), "f.gz is truncated");
  }
  std::string flipped = whole;
  flipped[whole.size() / 2] ^= 0x20;
  EXPECT_USER_ERROR(gunzip(flipped, "f.gz"), "f.gz is");
}

TEST(FileTree, ReadsFoldersAndArchivesAlike) {
  const TempFolder folder;
  const std::map<std::string, std::string> files{{"top/a.txt", "A"}, {"top/sub/b.txt.gz", gzipped("B")}};
  for (const auto& [name, bytes] : files) write_bytes(folder / name, bytes);
  write_bytes(folder / "top/.hidden/c", "C");
  write_bytes(folder / "x.tar.gz", tar_gz(files));
  for (const auto& path : {folder / "top", folder / "x.tar.gz"}) {
    const data::FileTree tree = data::FileTree::open(path);
    EXPECT_EQ(tree.files(), (std::vector<std::string>{"a.txt", "sub/b.txt.gz"})) << path;
    EXPECT_EQ(tree.read("a.txt"), "A");
    EXPECT_EQ(tree.read_inflated("sub/b.txt.gz"), "B");
    EXPECT_EQ(tree.find("b.txt.gz"), "sub/b.txt.gz");
    EXPECT_EQ(tree.find("nothing"), "");
    EXPECT_USER_ERROR(tree.read("nothing"), "nothing");
  }
}

TEST(FileTree, RefusesWhatIsMissingEmptyOrCorrupt) {
  const TempFolder folder;
  EXPECT_USER_ERROR(data::FileTree::open(folder / "none"), "there is no file or folder");
  EXPECT_USER_ERROR(data::FileTree::open(folder.path()), "holds no files");
  const std::string whole = tar_gz({{"d/a", std::string(300'000, 'q')}, {"d/b", "B"}});
  write_bytes(folder / "cut.tar.gz", whole.substr(0, whole.size() / 2));
  EXPECT_USER_ERROR(data::FileTree::open(folder / "cut.tar.gz"), "cut.tar.gz is truncated or corrupt");
  write_bytes(folder / "junk.tar.gz", "this is no archive at all");
  EXPECT_USER_ERROR(data::FileTree::open(folder / "junk.tar.gz"), "junk.tar.gz is truncated or corrupt");
}

TEST(HasArchiveName, KnowsTheUsualOnes) {
  EXPECT_TRUE(has_archive_name("a/b.tar.gz"));
  EXPECT_TRUE(has_archive_name("B.ZIP"));
  EXPECT_FALSE(has_archive_name("a.gz"));
}

}  // namespace
}  // namespace sotto::io
