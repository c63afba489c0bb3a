// Every attack says what it is, and names that are none are answered with those that there are.
#include "attacks/catalogue.h"

#include "../support/expect_user_error.h"

#include <gtest/gtest.h>

#include <set>

namespace sotto::attacks {
namespace {

TEST(Catalogue, EntriesDescribeThemselvesInOneLine) {
  std::set<std::string> names;
  for (const AttackEntry& entry : catalogue()) {
    EXPECT_TRUE(names.insert(entry.name).second) << entry.name << " is there twice";
    EXPECT_EQ(&find_attack(entry.name), &entry);
    EXPECT_NE(entry.run, nullptr) << entry.name;
    EXPECT_FALSE(entry.what.empty()) << entry.name;
    EXPECT_FALSE(entry.needs.empty()) << entry.name;
    for (const std::string& text : {entry.what, entry.citation, entry.needs}) {
      EXPECT_EQ(text.find('\n'), std::string::npos) << entry.name;
    }
  }
}

TEST(Catalogue, UnknownNamesAreAnsweredWithAllOfThem) {
  EXPECT_USER_ERROR(find_attack("lyra"), "did you mean 'lira'?");
  for (const AttackEntry& entry : catalogue()) EXPECT_USER_ERROR(find_attack("unheard-of"), entry.name);
}

}  // namespace
}  // namespace sotto::attacks
