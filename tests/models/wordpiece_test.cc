#include "models/text/wordpiece.h"

#include "../support/expect_user_error.h"
#include "../support/temp_folder.h"
#include "base/files.h"

#include <ATen/ATen.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace sotto::models {
namespace {

using test::TempFolder;
using ::testing::ElementsAre;
using ::testing::SizeIs;

// Ids are line numbers.
enum : int64_t { kPad, kUnk, kCls, kSep, kThe, kCafe, kUn, kAff, kAble, kComma, kDollar, kZhong, kGuo, kTheCased };
constexpr const char* kVocabulary = "[PAD]\n[UNK]\n[CLS]\n[SEP]\nthe\ncafe\nun\n##aff\n##able\n,\n$\n中\n国\nThe\n";

WordPiece tokenizer() {
  const TempFolder folder;
  write_file_atomically(folder / "vocab.txt", std::string_view(kVocabulary));
  return WordPiece::open(folder / "vocab.txt");
}

auto encode(const std::string& text, int64_t length = 16) {
  return tokenizer().encode(text, length);
}

TEST(WordPiece, GreedyLongestPieces) {
  EXPECT_THAT(encode("unaffable"), ElementsAre(kCls, kUn, kAff, kAble, kSep));
  EXPECT_THAT(encode("unaffableq"), ElementsAre(kCls, kUnk, kSep)) << "a word is known wholly or not at all";
}

TEST(WordPiece, CaseAccentsAndSpaces) {
  EXPECT_THAT(encode("  THE\tCafé\u00a0the\n"), ElementsAre(kCls, kThe, kCafe, kThe, kSep));
  EXPECT_THAT(encode("Cafe\u0301"), ElementsAre(kCls, kCafe, kSep)) << "a combining accent";
}

TEST(WordPiece, PunctuationAndChineseAreWordsOfTheirOwn) {
  EXPECT_THAT(encode("the,the$"), ElementsAre(kCls, kThe, kComma, kThe, kDollar, kSep));
  EXPECT_THAT(encode("the中国the"), ElementsAre(kCls, kThe, kZhong, kGuo, kThe, kSep));
  EXPECT_THAT(encode("the。the"), ElementsAre(kCls, kThe, kUnk, kThe, kSep));
}

TEST(WordPiece, ControlCharactersAndBrokenUtf8AreDropped) {
  EXPECT_THAT(encode(std::string("th\x01\u200b\0e", 8)), ElementsAre(kCls, kThe, kSep));
  EXPECT_THAT(encode("t\xffh\xc3"
                     "e"),
              ElementsAre(kCls, kThe, kSep));
}

TEST(WordPiece, EmptyLongAndCut) {
  EXPECT_THAT(encode(""), ElementsAre(kCls, kSep));
  EXPECT_THAT(encode(std::string(101, 'a')), ElementsAre(kCls, kUnk, kSep));
  EXPECT_THAT(encode("the the the the", 4), ElementsAre(kCls, kThe, kThe, kSep));
  EXPECT_THAT(encode("the unaffable", 4), ElementsAre(kCls, kThe, kUn, kSep));
}

TEST(WordPiece, BatchesArePaddedWithZero) {
  const at::Tensor rows = tokenizer().encode_all({"the", "the cafe"}, 16);
  EXPECT_TRUE(rows.equal(at::tensor({kCls, kThe, kSep, kPad, kCls, kThe, kCafe, kSep}).view({2, 4})));
}

WordPiece from_json(const nlohmann::json& normalizer, const std::string& type = "WordPiece") {
  const TempFolder folder;
  nlohmann::json vocabulary;
  for (int64_t id = 0; const char* piece : {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "the", "The", "é", "e"})
    vocabulary[piece] = id++;
  const nlohmann::json json = {{"normalizer", normalizer}, {"model", {{"type", type}, {"vocab", vocabulary}}}};
  write_file_atomically(folder / "tokenizer.json", json.dump());
  return WordPiece::open(folder / "tokenizer.json");
}

TEST(WordPiece, JsonSaysWhetherCaseAndAccentsStay) {
  EXPECT_THAT(from_json({{"lowercase", true}, {"strip_accents", nullptr}}).encode("The é", 9), ElementsAre(2, 4, 7, 3));
  EXPECT_THAT(from_json({{"lowercase", false}, {"strip_accents", nullptr}}).encode("The é", 9),
              ElementsAre(2, 5, 6, 3));
  EXPECT_THAT(from_json({{"lowercase", true}, {"strip_accents", false}}).encode("The é", 9), ElementsAre(2, 4, 6, 3));
}

TEST(WordPiece, BadFiles) {
  const TempFolder folder;
  EXPECT_USER_ERROR(from_json({}, "BPE"), "only WordPiece");
  write_file_atomically(folder / "tokenizer.json", std::string_view("{\"model\": "));
  EXPECT_USER_ERROR(WordPiece::open(folder / "tokenizer.json"), "not a tokenizer");
  write_file_atomically(folder / "vocab.txt", std::string_view("[UNK]\n[CLS]\n"));
  EXPECT_USER_ERROR(WordPiece::open(folder / "vocab.txt"), "no [SEP]");
}

}  // namespace
}  // namespace sotto::models
