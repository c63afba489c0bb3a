// WordPiece tokenisation as BERT does it.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace sotto::models {

class WordPiece {
 public:
  // Reads a tokenizer.json whose model is WordPiece, or a vocab.txt (one piece a line, taken to be uncased). Anything
  // else, or a vocabulary without [UNK], [CLS] and [SEP], is a UserError.
  static WordPiece open(const std::filesystem::path& path);

  // [CLS] pieces… [SEP], cut to max_length. Control characters and invalid UTF-8 are dropped; characters of Chinese are
  // words of their own; case and accents go unless the tokenizer keeps them; a word without pieces, or of more than 100
  // characters, is [UNK].
  std::vector<int64_t> encode(std::string_view text, int64_t max_length) const;

  // All texts, int64 [N, longest], 0 behind the end of each.
  at::Tensor encode_all(const std::vector<std::string>& texts, int64_t max_length) const;

 private:
  int64_t id(const std::string& piece) const;
  void add_pieces(const std::string& word, std::vector<int64_t>& ids) const;

  std::unordered_map<std::string, int64_t> ids_;
  bool lowercase_ = true;
  bool strip_accents_ = true;
  int64_t unknown_ = 0, begin_ = 0, end_ = 0;
};

}  // namespace sotto::models
