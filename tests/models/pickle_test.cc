#include "models/weights/pickle.h"

#include "../support/expect_user_error.h"

#include <gtest/gtest.h>

namespace sotto::models {
namespace {

using Kind = Pickled::Kind;
using namespace std::string_literals;

TEST(Pickle, ReadsLiteralsAndContainers) {
  // pickle.dumps({"a": [1, -2, 300, 70000], "b": (True, None, "x"), 5: 2.5}, 2)
  const auto value = read_pickle(
      "\x80\x02}(X\x01\x00\x00\x00\x61](K\x01J\xfe\xff\xff\xffM,\x01Jp\x11\x01\x00"
      "eX\x01\x00\x00\x00\x62\x88NX\x01\x00\x00\x00x\x87K\x05G@\x04\x00\x00\x00\x00\x00\x00u."s,
      "test");
  ASSERT_EQ(value->kind, Kind::kMapping);
  ASSERT_EQ(value->entries.size(), 3u);
  const Pickled* list = value->find("a");
  ASSERT_NE(list, nullptr);
  ASSERT_EQ(list->items.size(), 4u);
  EXPECT_EQ(list->items[1]->integer, -2);
  EXPECT_EQ(list->items[2]->integer, 300);
  EXPECT_EQ(list->items[3]->integer, 70000);
  const Pickled* tuple = value->find("b");
  ASSERT_EQ(tuple->items.size(), 3u);
  EXPECT_EQ(tuple->items[1]->kind, Kind::kNone);
  EXPECT_EQ(tuple->items[2]->text, "x");
  EXPECT_EQ(value->find("c"), nullptr);
}

TEST(Pickle, LongIntegersKeepTheirSign) {
  const auto value = read_pickle("\x80\x02\x8a\x05\x00\x00\x00\x00\x01\x8a\x02\x00\x80\x86."s, "test");
  EXPECT_EQ(value->items[0]->integer, int64_t{1} << 32);
  EXPECT_EQ(value->items[1]->integer, -32768);
}

TEST(Pickle, CallsAreKeptAndNeverMade) {
  // os.system("x"), as a malicious file would have it
  const auto value = read_pickle("\x80\x02\x63os\nsystem\nX\x01\x00\x00\x00x\x85R."s, "test");
  EXPECT_EQ(value->kind, Kind::kCall);
  EXPECT_EQ(value->text, "os.system");
  EXPECT_EQ(value->items[0]->text, "x");
}

TEST(Pickle, OrderedDictsAreMappingsThatMayCarryState) {
  const auto value = read_pickle(
      "\x80\x02\x63\x63ollections\nOrderedDict\n)R(X\x01\x00\x00\x00kK\x07u}X\x01\x00\x00\x00mK\x01s\x62."s, "test");
  ASSERT_EQ(value->kind, Kind::kMapping);
  EXPECT_EQ(value->find("k")->integer, 7);
  ASSERT_NE(value->state, nullptr);
}

TEST(Pickle, MemoRefersToTheSameObject) {
  const auto value = read_pickle("\x80\x02]q\x00h\x00\x86."s, "test");
  EXPECT_EQ(value->items[0], value->items[1]);
}

TEST(Pickle, EveryTruncationIsAnError) {
  const std::string whole = "\x80\x02\x63\x63ollections\nOrderedDict\n)R(X\x01\x00\x00\x00kJ\x07\x00\x00\x00u."s;
  for (size_t size = 0; size < whole.size(); ++size)
    EXPECT_USER_ERROR(read_pickle(std::string_view(whole).substr(0, size), "f.pt"), "f.pt: truncated or malformed");
}

TEST(Pickle, MalformedInputIsAnError) {
  EXPECT_USER_ERROR(read_pickle("\x80\x02."s, "f"), "malformed");
  EXPECT_USER_ERROR(read_pickle("\x80\x02h\x05."s, "f"), "malformed");
  EXPECT_USER_ERROR(read_pickle("\x80\x02K\x01u."s, "f"), "malformed");
  EXPECT_USER_ERROR(read_pickle("\x80\x02}(K\x01u."s, "f"), "malformed");
  EXPECT_USER_ERROR(read_pickle("\x80\x02I1\n."s, "f"), "operation 0x49");
}

}  // namespace
}  // namespace sotto::models
