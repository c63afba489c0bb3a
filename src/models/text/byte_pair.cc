#include "models/text/byte_pair.h"

#include "base/error.h"
#include "base/files.h"
#include "io/gzip.h"
#include "models/text/characters.h"

#include <algorithm>
#include <array>
#include <limits>
#include <sstream>

namespace sotto::models {
namespace {

constexpr const char* kWordEnd = "</w>";
constexpr const char* kTextBegin = "<|startoftext|>";
constexpr const char* kTextEnd = "<|endoftext|>";

bool is_printable(int byte) {
  return (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
}

// Bytes in the vocabulary's order: those that print as they are, then the others.
std::vector<int> bytes_in_order() {
  std::vector<int> bytes;
  for (const bool printable : {true, false})
    for (int byte = 0; byte < 256; ++byte)
      if (is_printable(byte) == printable) bytes.push_back(byte);
  return bytes;
}

// A byte as the character it is written with.
const std::array<std::string, 256>& written_bytes() {
  static const std::array<std::string, 256> written = [] {
    std::array<std::string, 256> result;
    char32_t next = 256;
    for (int byte = 0; byte < 256; ++byte) {
      const char32_t character = is_printable(byte) ? static_cast<char32_t>(byte) : next++;
      result[static_cast<size_t>(byte)] = encode_utf8({&character, 1});
    }
    return result;
  }();
  return written;
}

enum class Kind { kSpace, kLetter, kNumber, kOther };

Kind kind_of(char32_t c) {
  if (is_space(c) || c == U'\v' || c == U'\f') return Kind::kSpace;
  if (is_letter(c)) return Kind::kLetter;
  return is_number(c) ? Kind::kNumber : Kind::kOther;
}

// How long a contraction ('s 't 're 've 'm 'll 'd) begins here; 0 if none does.
size_t contraction(std::u32string_view rest) {
  for (const std::u32string_view ending : {U"'s", U"'t", U"'re", U"'ve", U"'m", U"'ll", U"'d"})
    if (rest.starts_with(ending)) return ending.size();
  return 0;
}

std::vector<std::u32string_view> words_of(std::u32string_view text) {
  std::vector<std::u32string_view> words;
  for (size_t begin = 0; begin < text.size();) {
    const Kind kind = kind_of(text[begin]);
    size_t end = begin + 1;
    if (const size_t length = contraction(text.substr(begin)); length > 0) {
      end = begin + length;
    } else if (kind == Kind::kLetter || kind == Kind::kOther) {
      while (end < text.size() && kind_of(text[end]) == kind) ++end;
    }
    if (kind != Kind::kSpace) words.push_back(text.substr(begin, end - begin));
    begin = end;
  }
  return words;
}

}  // namespace

BytePair::BytePair() {
  for (const char* ending : {"", kWordEnd})
    for (const int byte : bytes_in_order()) add(written_bytes()[static_cast<size_t>(byte)] + ending);
  add(kTextBegin);
  add(kTextEnd);
}

BytePair BytePair::open(const fs::path& path, int64_t vocabulary) {
  std::string content = read_file(path);
  if (io::is_gzipped(content)) content = io::gunzip(content, path.string());
  BytePair tokenizer;
  for (const char* special : {kTextBegin, kTextEnd}) tokenizer.ids_.erase(special);
  std::istringstream lines(content);
  std::string line;
  std::getline(lines, line);
  int64_t number = 1;
  while (tokenizer.vocabulary() + 2 < vocabulary && std::getline(lines, line)) {
    ++number;
    std::istringstream parts(line);
    std::string left, right, more;
    if (!(parts >> left >> right) || parts >> more)
      fail_user("{}:{}: not a merge, which is two pieces with a space between them", path.string(), number);
    tokenizer.ranks_.emplace(std::pair(left, right), static_cast<int64_t>(tokenizer.ranks_.size()));
    tokenizer.add(left + right);
  }
  for (const char* special : {kTextBegin, kTextEnd}) tokenizer.add(special);
  if (tokenizer.vocabulary() != vocabulary)
    fail_user("{}: with its {} merges there are {} pieces, but the model has {}", path.string(),
              tokenizer.ranks_.size(), tokenizer.vocabulary(), vocabulary);
  return tokenizer;
}

void BytePair::add(std::string piece) {
  ids_.emplace(std::move(piece), static_cast<int64_t>(ids_.size()));
}

std::vector<int64_t> BytePair::encode(std::string_view text, int64_t max_length) const {
  SOTTO_INVARIANT(max_length >= 2);
  std::u32string characters = decode_utf8(text);
  std::transform(characters.begin(), characters.end(), characters.begin(), in_lower_case);
  std::vector<int64_t> ids = {ids_.at(kTextBegin)};
  for (const std::u32string_view word : words_of(characters)) add_word(encode_utf8(word), ids);
  if (static_cast<int64_t>(ids.size()) > max_length - 1) ids.resize(static_cast<size_t>(max_length) - 1);
  ids.push_back(ids_.at(kTextEnd));
  return ids;
}

// The pair that comes first in the file is merged wherever it stands, until there is none.
void BytePair::add_word(const std::string& bytes, std::vector<int64_t>& ids) const {
  std::vector<std::string> pieces;
  for (const char byte : bytes) pieces.push_back(written_bytes()[static_cast<uint8_t>(byte)]);
  pieces.back() += kWordEnd;
  while (pieces.size() > 1) {
    int64_t best = std::numeric_limits<int64_t>::max();
    for (size_t i = 0; i + 1 < pieces.size(); ++i) {
      const auto found = ranks_.find({pieces[i], pieces[i + 1]});
      if (found != ranks_.end()) best = std::min(best, found->second);
    }
    if (best == std::numeric_limits<int64_t>::max()) break;
    std::vector<std::string> merged;
    for (size_t i = 0; i < pieces.size(); ++i) {
      const bool pair = i + 1 < pieces.size() && [&] {
        const auto found = ranks_.find({pieces[i], pieces[i + 1]});
        return found != ranks_.end() && found->second == best;
      }();
      merged.push_back(pair ? pieces[i] + pieces[i + 1] : pieces[i]);
      if (pair) ++i;
    }
    pieces = std::move(merged);
  }
  for (const std::string& piece : pieces) ids.push_back(ids_.at(piece));
}

}  // namespace sotto::models
