// Byte-pair tokenisation as CLIP does it.
//
//   vocabulary := byte (256) byte"</w>" (256) merge… "<|startoftext|>" "<|endoftext|>"
//
// A byte is written as a printable character; a word's last piece ends in </w>; merges are applied in the file's order.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace sotto::models {

class BytePair {
 public:
  // Bytes alone, without merges: a vocabulary of 514 that needs no file.
  BytePair();
  // The reference's file of merges (one header line, then "left right" a line; gzipped or not), of which the first
  // vocabulary - 514 are used. Fewer, or a line that is no pair, is a UserError.
  static BytePair open(const std::filesystem::path& path, int64_t vocabulary);

  int64_t vocabulary() const { return static_cast<int64_t>(ids_.size()); }

  // <|startoftext|> pieces… <|endoftext|>, at most max_length of them: the end is kept, pieces are cut. Lower case;
  // runs of spaces are one; letters, single digits, and runs of anything else are words of their own; what is no UTF-8
  // is a replacement character. HTML entities are taken as they are written.
  std::vector<int64_t> encode(std::string_view text, int64_t max_length) const;

 private:
  void add(std::string piece);
  void add_word(const std::string& bytes, std::vector<int64_t>& ids) const;

  std::unordered_map<std::string, int64_t> ids_;
  std::map<std::pair<std::string, std::string>, int64_t> ranks_;
};

}  // namespace sotto::models
