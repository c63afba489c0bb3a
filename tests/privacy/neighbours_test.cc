#include "privacy/neighbours.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace sotto::privacy {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(Neighbours, AreDescribedInASentenceOfTheirOwn) {
  std::set<std::string> sentences;
  for (const auto& adjacency : choices(Adjacency{})) {
    for (const auto& unit : choices(Unit{})) {
      const std::string text = describe({adjacency.value, unit.value});
      EXPECT_THAT(text, HasSubstr(unit.word));
      EXPECT_EQ(std::count(text.begin(), text.end(), '.'), 1) << text;
      EXPECT_EQ(text.back(), '.');
      sentences.insert(text);
    }
  }
  EXPECT_EQ(sentences.size(), choices(Adjacency{}).size() * choices(Unit{}).size());
}

TEST(Neighbours, ThatComeAndGoAreToldFromThoseThatAreBlank) {
  const std::string gone = describe({Adjacency::kAddRemove, Unit::kRecord});
  const std::string blank = describe({Adjacency::kZeroOut, Unit::kRecord});
  EXPECT_THAT(gone, HasSubstr("even how many records there are is a secret"));
  EXPECT_THAT(gone, HasSubstr("zero-out"));
  EXPECT_THAT(gone, Not(HasSubstr("public")));
  EXPECT_THAT(blank, HasSubstr("whether a record is blank"));
  EXPECT_THAT(blank, HasSubstr("is public"));
  EXPECT_THAT(blank, HasSubstr("add-remove"));
  EXPECT_THAT(describe({Adjacency::kReplace, Unit::kClient}), HasSubstr("how many clients there are is public"));
  EXPECT_THAT(describe({Adjacency::kReplaceSameLabel, Unit::kRecord}), HasSubstr("another of its class"));
}

}  // namespace
}  // namespace sotto::privacy
