#include "data/readers/text_csv.h"

#include "../../support/expect_user_error.h"
#include "../../support/temp_folder.h"
#include "../make_files.h"

#include <ATen/ATen.h>

#include <gtest/gtest.h>

namespace sotto::data {
namespace {

using namespace sotto::test;
using Names = std::vector<std::string>;

TEST(TextCsv, ReadsHeaderQuotesAndDomains) {
  const TempFolder folder;
  write_bytes(folder / "t.csv", "text,domain,label\n\"Hello, \"\"world\"\"\",web,pos\nBye,mail,neg\n");
  const Dataset dataset = read_text_csv(folder / "t.csv", "made");
  EXPECT_EQ(dataset.kind, Kind::kText);
  EXPECT_EQ(dataset.train.texts, (Names{"Hello, \"world\"", "Bye"}));
  EXPECT_EQ(dataset.class_names, (Names{"neg", "pos"}));
  EXPECT_EQ(dataset.domain_names, (Names{"mail", "web"}));
  EXPECT_TRUE(at::equal(dataset.train.y, at::tensor({1, 0}, at::kLong)));
}

TEST(TextCsv, WithoutHeaderTheFirstColumnIsTheLabel) {
  const TempFolder folder;
  write_bytes(folder / "train.csv", "\"10\",\"Title\",\"Body\"\n\"9\",\"T\",\"B\"\n");
  write_bytes(folder / "test.csv", "9,T,B\n");
  const Dataset dataset = read_text_csv(folder.path(), "made");
  EXPECT_EQ(dataset.class_names, (Names{"9", "10"}));
  EXPECT_EQ(dataset.train.texts[0], "Title Body");
  EXPECT_EQ(dataset.test.size(), 1);
}

TEST(TextCsv, RefusesBadRows) {
  const TempFolder folder;
  const auto expect = [&](const std::string& text, const std::string& part) {
    write_bytes(folder / "t.csv", text);
    EXPECT_USER_ERROR(read_text_csv(folder / "t.csv", "made"), part);
  };
  expect("label,text\n1,caf\xe9\n", "row 2: the text is not UTF-8");
  expect("label,text\n1,\n", "row 2: the text is empty");
  expect("label,text\n,hello\n", "row 2: the label is empty");
  expect("label,text\n", "no records");
  write_bytes(folder / "train.csv", "label,text\n1,hello\n");
  write_bytes(folder / "test.csv", "label,text\n2,hello\n");
  EXPECT_USER_ERROR(read_text_csv(folder.path(), "made"), "label '2' does not occur");
}

TEST(TextCsv, TellsTextFromTables) {
  EXPECT_TRUE(is_text_table({{"label", "Content"}, {"1", "x"}}));
  EXPECT_TRUE(is_text_table({{"1", "a sentence that is long enough to be one"}}));
  EXPECT_FALSE(is_text_table({{"age", "label"}, {"1", "2"}}));
  EXPECT_FALSE(is_text_table({{"1", "2", "3"}}));
}

TEST(AgNews, UsesDescriptionsAndDropsRepeats) {
  const TempFolder folder;
  write_bytes(folder / "dev.csv", "label,content\n1,Known news\n2,Other news\n");
  write_bytes(folder / "test.csv", "\"2\",\"Title\",\"Fresh news\"\n\"1\",\"Title\",\"Known news\"\n");
  write_bytes(folder / "classes.txt", "World\nSports\n");
  const Dataset dataset = read_ag_news(FileTree::open(folder.path()), "ag-news");
  EXPECT_EQ(dataset.class_names, (Names{"World", "Sports"}));
  EXPECT_EQ(dataset.test.texts, Names{"Fresh news"});
  EXPECT_EQ(dataset.test.y.item<int64_t>(), 1);
  write_bytes(folder / "train.csv", "1,Head,Body\n2,Head,Body two\n");
  const Dataset titled = read_ag_news(FileTree::open(folder.path()), "ag-news");
  EXPECT_EQ(titled.train.texts[0], "Head Body");
  EXPECT_EQ(titled.test.texts[1], "Title Known news");
  write_bytes(folder / "classes.txt", "World\n");
  EXPECT_USER_ERROR(read_ag_news(FileTree::open(folder.path()), "ag-news"), "names 1 classes, but there are 2");
}

}  // namespace
}  // namespace sotto::data
