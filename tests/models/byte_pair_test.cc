#include "models/text/byte_pair.h"

#include "../data/make_files.h"
#include "../support/expect_user_error.h"
#include "../support/temp_folder.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sotto::models {
namespace {

using test::TempFolder;
using ::testing::ElementsAre;

constexpr int64_t kLetterA = 'a' - '!';  // bytes that print stand in their own order
constexpr int64_t kWordEnd = 256;        // the same with </w>
constexpr int64_t kMerges = 512;

// begin and end come behind the merges
std::vector<int64_t> framed(std::vector<int64_t> inner, int64_t merges) {
  inner.insert(inner.begin(), kMerges + merges);
  inner.push_back(kMerges + merges + 1);
  return inner;
}

BytePair with_merges(const TempFolder& folder, const std::vector<std::string>& merges, bool zipped = false) {
  std::string lines = "#version: 0.2\n";
  for (const std::string& merge : merges) lines += merge + "\n";
  test::write_bytes(folder / "merges.txt", zipped ? test::gzipped(lines) : lines);
  return BytePair::open(folder / "merges.txt", kMerges + 2 + static_cast<int64_t>(merges.size()));
}

TEST(BytePair, BytesAlone) {
  const BytePair tokenizer;
  EXPECT_EQ(tokenizer.vocabulary(), 514);
  EXPECT_EQ(tokenizer.encode("ab", 77), framed({kLetterA, kLetterA + 1 + kWordEnd}, 0));
  EXPECT_EQ(tokenizer.encode("", 77), framed({}, 0));
  EXPECT_EQ(tokenizer.encode("  \t\n ", 77), framed({}, 0));
}

TEST(BytePair, MergesInTheOrderOfTheFile) {
  const TempFolder folder;
  for (const bool zipped : {false, true}) {
    const BytePair tokenizer = with_merges(folder, {"c a", "a t</w>", "ca t</w>"}, zipped);
    EXPECT_EQ(tokenizer.encode("cat", 77), framed({kMerges + 2}, 3));
    // "at" alone is the second merge; inside "cat" the first one takes the a.
    EXPECT_EQ(tokenizer.encode("at", 77), framed({kMerges + 1}, 3));
    EXPECT_EQ(tokenizer.encode("CAT  cat", 77), framed({kMerges + 2, kMerges + 2}, 3));
    // The end of a word is part of its last piece.
    EXPECT_EQ(tokenizer.encode("cata", 77), framed({kMerges, 't' - '!', kLetterA + kWordEnd}, 3));
  }
}

TEST(BytePair, APairIsMergedWhereverItStands) {
  const TempFolder folder;
  const BytePair tokenizer = with_merges(folder, {"a b"});
  EXPECT_EQ(tokenizer.encode("ababc", 77), framed({kMerges, kMerges, 'c' - '!' + kWordEnd}, 1));
  EXPECT_EQ(tokenizer.encode("aab", 77), framed({kLetterA, kLetterA, 'b' - '!' + kWordEnd}, 1));
}

TEST(BytePair, WordsAreLettersDigitsContractionsAndTheRest) {
  const BytePair tokenizer;
  const auto words = [&](const std::string& text) {  // each word ends in a token with </w>
    int64_t count = 0;
    for (const int64_t id : tokenizer.encode(text, 1000)) count += id >= kWordEnd && id < kMerges ? 1 : 0;
    return count;
  };
  EXPECT_EQ(words("it's"), 2);
  EXPECT_EQ(words("they'll"), 2);
  EXPECT_EQ(words("2024"), 4);
  EXPECT_EQ(words("a-b"), 3);
  EXPECT_EQ(words("?!..."), 1);
  EXPECT_EQ(words("mountain bike"), 2);
}

TEST(BytePair, NonAsciiNamesAreTheirBytes) {
  const BytePair tokenizer;
  EXPECT_EQ(tokenizer.encode("Ä", 77), tokenizer.encode("ä", 77));
  EXPECT_EQ(tokenizer.encode("ä", 77).size(), 4U);
  EXPECT_EQ(tokenizer.encode("日本", 77).size(), 2U + 6U);
  EXPECT_EQ(tokenizer.encode("🍎", 77).size(), 2U + 4U);
  EXPECT_EQ(tokenizer.encode("\xff", 77), tokenizer.encode("\xEF\xBF\xBD", 77));
  // é is C3 A9, both of which print as they are.
  EXPECT_THAT(tokenizer.encode("é", 77), ElementsAre(512, 0xC3 - 174 + 94 + 12, 0xA9 - 161 + 94 + kWordEnd, 513));
}

TEST(BytePair, LongTextsKeepTheirEnd) {
  const BytePair tokenizer;
  const auto ids = tokenizer.encode(std::string(500, 'x'), 10);
  ASSERT_EQ(ids.size(), 10U);
  EXPECT_EQ(ids.front(), 512);
  EXPECT_EQ(ids.back(), 513);
  EXPECT_EQ(tokenizer.encode("anything", 2), framed({}, 0));
}

TEST(BytePair, BadFiles) {
  const TempFolder folder;
  test::write_bytes(folder / "few.txt", "#version\na b\n");
  EXPECT_USER_ERROR(BytePair::open(folder / "few.txt", 520), "515");
  test::write_bytes(folder / "odd.txt", "#version\na b\nonly\n");
  EXPECT_USER_ERROR(BytePair::open(folder / "odd.txt", 520), "odd.txt:3");
  EXPECT_USER_ERROR(BytePair::open(folder / "none.txt", 520), "none.txt");
}

}  // namespace
}  // namespace sotto::models
