#include "models/text/characters.h"

#include <algorithm>
#include <array>

namespace sotto::models {

std::u32string decode_utf8(std::string_view text) {
  std::u32string characters;
  const auto* bytes = reinterpret_cast<const utf8proc_uint8_t*>(text.data());
  auto left = static_cast<utf8proc_ssize_t>(text.size());
  while (left > 0) {
    utf8proc_int32_t character = 0;
    const utf8proc_ssize_t used = std::max<utf8proc_ssize_t>(utf8proc_iterate(bytes, left, &character), 1);
    characters.push_back(character < 0 ? kReplacement : static_cast<char32_t>(character));
    bytes += used;
    left -= used;
  }
  return characters;
}

std::string encode_utf8(std::u32string_view characters) {
  std::string text;
  for (const char32_t character : characters) {
    std::array<utf8proc_uint8_t, 4> bytes{};
    const auto size = utf8proc_encode_char(static_cast<utf8proc_int32_t>(character), bytes.data());
    text.append(reinterpret_cast<const char*>(bytes.data()), static_cast<size_t>(size));
  }
  return text;
}

utf8proc_category_t category(char32_t character) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(character));
}

bool is_space(char32_t c) {
  const auto kind = category(c);
  return c == '\t' || c == '\n' || c == '\r' || kind == UTF8PROC_CATEGORY_ZS || kind == UTF8PROC_CATEGORY_ZL ||
         kind == UTF8PROC_CATEGORY_ZP;
}

bool is_letter(char32_t c) {
  const auto kind = category(c);
  return kind >= UTF8PROC_CATEGORY_LU && kind <= UTF8PROC_CATEGORY_LO;
}

bool is_number(char32_t c) {
  const auto kind = category(c);
  return kind >= UTF8PROC_CATEGORY_ND && kind <= UTF8PROC_CATEGORY_NO;
}

char32_t in_lower_case(char32_t c) {
  return static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c)));
}

}  // namespace sotto::models
