#include "models/text/wordpiece.h"

#include "base/error.h"
#include "base/files.h"
#include "models/text/characters.h"

#include <ATen/ATen.h>

#include <nlohmann/json.hpp>
#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <sstream>

namespace sotto::models {
namespace {

constexpr size_t kLongestWord = 100;

using Characters = std::u32string;

bool is_dropped(char32_t c) {
  const auto kind = category(c);
  return c == 0 || c == kReplacement || kind == UTF8PROC_CATEGORY_CC || kind == UTF8PROC_CATEGORY_CF ||
         kind == UTF8PROC_CATEGORY_CN || kind == UTF8PROC_CATEGORY_CO || kind == UTF8PROC_CATEGORY_CS;
}

// All ASCII that is neither letter nor digit counts, as BERT has it: $ and ^ too.
bool is_punctuation(char32_t c) {
  if (c < 128) return (c >= 33 && c <= 47) || (c >= 58 && c <= 64) || (c >= 91 && c <= 96) || (c >= 123 && c <= 126);
  const auto kind = category(c);
  return kind >= UTF8PROC_CATEGORY_PC && kind <= UTF8PROC_CATEGORY_PO;
}

bool is_chinese(char32_t c) {
  constexpr std::array<std::pair<char32_t, char32_t>, 8> kBlocks = {{{0x4E00, 0x9FFF},
                                                                     {0x3400, 0x4DBF},
                                                                     {0x20000, 0x2A6DF},
                                                                     {0x2A700, 0x2B73F},
                                                                     {0x2B740, 0x2B81F},
                                                                     {0x2B820, 0x2CEAF},
                                                                     {0xF900, 0xFAFF},
                                                                     {0x2F800, 0x2FA1F}}};
  return std::any_of(kBlocks.begin(), kBlocks.end(), [&](const auto& b) { return c >= b.first && c <= b.second; });
}

Characters without_accents(char32_t character) {
  std::array<utf8proc_int32_t, 32> parts{};
  int boundary = 0;
  const auto count = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(character), parts.data(), parts.size(),
                                             UTF8PROC_DECOMPOSE, &boundary);
  if (count < 0 || count > static_cast<utf8proc_ssize_t>(parts.size())) return {character};
  Characters kept;
  for (utf8proc_ssize_t i = 0; i < count; ++i) {
    const auto part = static_cast<char32_t>(parts[static_cast<size_t>(i)]);
    if (category(part) != UTF8PROC_CATEGORY_MN) kept.push_back(part);
  }
  return kept;
}

class WordSplitter {
 public:
  void add(char32_t character) {
    if (is_space(character)) {
      end_word();
    } else if (is_punctuation(character) || is_chinese(character)) {
      end_word();
      word_.push_back(character);
      end_word();
    } else {
      word_.push_back(character);
    }
  }

  std::vector<Characters> finish() {
    end_word();
    return std::move(words_);
  }

 private:
  void end_word() {
    if (!word_.empty()) words_.push_back(std::exchange(word_, {}));
  }

  Characters word_;
  std::vector<Characters> words_;
};

std::vector<Characters> words_of(std::string_view text, bool lowercase, bool strip_accents) {
  WordSplitter splitter;
  for (const char32_t character : decode_utf8(text)) {
    if (!is_space(character) && is_dropped(character)) continue;
    for (const char32_t part : strip_accents ? without_accents(character) : Characters{character})
      splitter.add(lowercase ? in_lower_case(part) : part);
  }
  return splitter.finish();
}

std::unordered_map<std::string, int64_t> lines_as_ids(const std::string& content) {
  std::unordered_map<std::string, int64_t> ids;
  std::istringstream lines(content);
  for (std::string line; std::getline(lines, line);) {
    if (line.ends_with('\r')) line.pop_back();
    ids.emplace(line, static_cast<int64_t>(ids.size()));
  }
  return ids;
}

}  // namespace

WordPiece WordPiece::open(const fs::path& path) {
  WordPiece tokenizer;
  const std::string content = read_file(path);
  if (path.extension() == ".json") {
    try {
      const auto json = nlohmann::json::parse(content);
      const auto& model = json.at("model");
      if (model.value("type", "WordPiece") != "WordPiece")
        fail_user("{}: its model is {}, but only WordPiece is supported", path.string(), model.at("type").dump());
      model.at("vocab").get_to(tokenizer.ids_);
      const auto normalizer = json.value("normalizer", nlohmann::json::object());
      tokenizer.lowercase_ = normalizer.is_object() && normalizer.value("lowercase", true);
      const auto accents =
          normalizer.is_object() ? normalizer.value("strip_accents", nlohmann::json()) : nlohmann::json();
      tokenizer.strip_accents_ = accents.is_boolean() ? accents.get<bool>() : tokenizer.lowercase_;
    } catch (const nlohmann::json::exception& error) {
      fail_user("{}: not a tokenizer ({})", path.string(), error.what());
    }
  } else {
    tokenizer.ids_ = lines_as_ids(content);
  }
  for (const char* special : {"[UNK]", "[CLS]", "[SEP]"})
    if (!tokenizer.ids_.contains(special)) fail_user("{}: the vocabulary has no {}", path.string(), special);
  tokenizer.unknown_ = tokenizer.ids_.at("[UNK]");
  tokenizer.begin_ = tokenizer.ids_.at("[CLS]");
  tokenizer.end_ = tokenizer.ids_.at("[SEP]");
  return tokenizer;
}

int64_t WordPiece::id(const std::string& piece) const {
  const auto found = ids_.find(piece);
  return found == ids_.end() ? -1 : found->second;
}

// Greedy: the longest piece that begins the rest of the word, again and again.
void WordPiece::add_pieces(const std::string& word, std::vector<int64_t>& ids) const {
  const size_t before = ids.size();
  size_t start = 0;
  while (start < word.size()) {
    size_t end = word.size();
    int64_t found = -1;
    for (; end > start; --end) {
      found = id((start > 0 ? "##" : "") + word.substr(start, end - start));
      if (found >= 0) break;
    }
    if (found < 0) {
      ids.resize(before);
      ids.push_back(unknown_);
      return;
    }
    ids.push_back(found);
    start = end;
  }
}

std::vector<int64_t> WordPiece::encode(std::string_view text, int64_t max_length) const {
  SOTTO_INVARIANT(max_length >= 2);
  std::vector<int64_t> ids = {begin_};
  for (const Characters& word : words_of(text, lowercase_, strip_accents_)) {
    if (static_cast<int64_t>(ids.size()) >= max_length) break;
    if (word.size() > kLongestWord)
      ids.push_back(unknown_);
    else
      add_pieces(encode_utf8(word), ids);
  }
  ids.resize(static_cast<size_t>(std::min<int64_t>(static_cast<int64_t>(ids.size()), max_length - 1)));
  ids.push_back(end_);
  return ids;
}

at::Tensor WordPiece::encode_all(const std::vector<std::string>& texts, int64_t max_length) const {
  std::vector<std::vector<int64_t>> rows;
  rows.reserve(texts.size());
  size_t longest = 0;
  for (const std::string& text : texts) {
    rows.push_back(encode(text, max_length));
    longest = std::max(longest, rows.back().size());
  }
  at::Tensor tokens = at::zeros({static_cast<int64_t>(rows.size()), static_cast<int64_t>(longest)}, at::kLong);
  for (size_t i = 0; i < rows.size(); ++i)
    std::copy(rows[i].begin(), rows[i].end(), tokens.data_ptr<int64_t>() + i * longest);
  return tokens;
}

}  // namespace sotto::models
