#include "base/shell_word.h"

#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace sotto {

std::string shell_word(std::string_view text) {
  const auto is_plain = [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte >= 0x80 || std::isalnum(byte) != 0 || std::string_view("_-./,:=@%+").find(c) != std::string_view::npos;
  };
  if (!text.empty() && std::all_of(text.begin(), text.end(), is_plain)) return std::string(text);
  return fmt::format("'{}'", join(split(text, '\''), R"('\'')"));
}

}  // namespace sotto
