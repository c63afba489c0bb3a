#include "report/partition_table.h"

#include "base/text.h"

#include <ATen/ATen.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace sotto::report {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

PartitionSummary summary(int64_t clients, int64_t classes) {
  PartitionSummary result;
  result.title = "a partition";
  result.counts = at::arange(clients * classes).view({clients, classes});
  for (int64_t c = 0; c < classes; ++c) result.class_names.push_back(fmt::format("c{}", c));
  result.clients = clients;
  return result;
}

std::vector<std::string> lines(const std::string& text) {
  auto result = split(text, '\n');
  result.pop_back();
  return result;
}

std::vector<std::string> words(const std::string& line) {
  auto result = split(line, ' ');
  std::erase(result, "");
  return result;
}

TEST(PartitionTable, ShowsEveryCountSizeAndTotal) {
  const auto rows = lines(partition_table(summary(3, 2)));
  ASSERT_EQ(rows.size(), 7U);
  EXPECT_EQ(rows[0], "a partition");
  EXPECT_EQ(words(rows[1]), (std::vector<std::string>{"client", "c0", "c1", "classes", "records"}));
  EXPECT_EQ(words(rows[3]), (std::vector<std::string>{"0", "–", "1", "1", "1"}));
  EXPECT_EQ(words(rows[5]), (std::vector<std::string>{"2", "4", "5", "2", "9"}));
  EXPECT_EQ(words(rows[6]), (std::vector<std::string>{"all", "6", "9", "2", "15"}));
}

TEST(PartitionTable, LinesUp) {
  auto wide = summary(5, 4);
  wide.class_names = {"Übergröße und mehr", "b", "c", "d"};
  const auto rows = lines(partition_table(wide));
  for (size_t i = 2; i < rows.size(); ++i) EXPECT_EQ(display_width(rows[i]), display_width(rows[1])) << rows[i];
  EXPECT_THAT(rows[1], HasSubstr("Übergrö…"));
}

TEST(PartitionTable, LeavesOutTheMiddleOfManyClients) {
  const std::string text = partition_table(summary(100, 2), 6);
  const auto rows = lines(text);
  ASSERT_EQ(rows.size(), 3U + 6U + 1U + 1U);
  EXPECT_EQ(words(rows[6]).front(), "3");
  EXPECT_EQ(words(rows[7]).front(), "…");
  EXPECT_EQ(words(rows[8]).front(), "98");
  EXPECT_EQ(words(rows.back()).back(), std::to_string(199 * 200 / 2));
}

TEST(PartitionTable, SumsUpTheLastOfManyClasses) {
  const auto rows = lines(partition_table(summary(1, 100), 24, 4));
  EXPECT_EQ(words(rows[1]),
            (std::vector<std::string>{"client", "c0", "c1", "c2", "+97", "more", "classes", "records"}));
  EXPECT_EQ(words(rows[3]), (std::vector<std::string>{"0", "–", "1", "2", "4947", "99", "4950"}));
}

TEST(PartitionTable, SaysWhenOnlySomeClientsAreCounted) {
  auto part = summary(3, 2);
  EXPECT_THAT(partition_table(part), Not(HasSubstr("the first")));
  part.clients = 100'000;
  EXPECT_THAT(partition_table(part), HasSubstr("the first 3 of 100000 clients"));
}

}  // namespace
}  // namespace sotto::report
