// Text as Unicode characters, for tokenizers.
#pragma once

#include <utf8proc.h>

#include <string>
#include <string_view>

namespace sotto::models {

inline constexpr char32_t kReplacement = 0xFFFD;

// Each byte that is no UTF-8 becomes kReplacement.
std::u32string decode_utf8(std::string_view text);
std::string encode_utf8(std::u32string_view characters);

utf8proc_category_t category(char32_t character);
bool is_space(char32_t character);
bool is_letter(char32_t character);
bool is_number(char32_t character);
char32_t in_lower_case(char32_t character);

}  // namespace sotto::models
