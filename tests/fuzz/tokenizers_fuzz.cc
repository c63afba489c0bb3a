// Tokenizers' files, and texts of records.
#include "fuzz.h"
#include "models/text/byte_pair.h"
#include "models/text/wordpiece.h"

std::vector<std::string> sotto::fuzz::seeds() {
  const std::string next(kNextFile);
  return {
      "[PAD]\n[UNK]\n[CLS]\n[SEP]\na\n##b\nword\n" + next + "A word, ab\xc3\xa9 \xe4\xb8\xad",
      R"({"normalizer": {"type": "BertNormalizer", "lowercase": true}, "model": {"type": "WordPiece", "vocab": {"[UNK]": 0, "[CLS]": 1, "[SEP]": 2, "a": 3}}})" +
          next + "a b",
      "#version: 0.2\na b\nab c</w>\n" + next + "abc it's 12 words \xff"};
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace sotto;
  const auto input = fuzz::parts(fuzz::bytes_of(data, size), 2);
  for (const char* name : {"vocab.txt", "tokenizer.json"}) {
    fuzz::attempt([&] { models::WordPiece::open(fuzz::as_file(name, input[0])).encode(input[1], 16); });
  }
  static const models::BytePair bytes_alone;
  fuzz::attempt([&] { bytes_alone.encode(input[1], 16); });
  return fuzz::attempt(
      [&] { models::BytePair::open(fuzz::as_file("merges.txt", input[0]), 516).encode(input[1], 16); });
}
