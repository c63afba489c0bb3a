#include "base/utf8.h"

#include <cstddef>
#include <cstdint>

namespace sotto {

bool is_utf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const auto first = static_cast<uint8_t>(text[i++]);
    if (first < 0x80) continue;
    const int more = first >= 0xf0 ? 3 : first >= 0xe0 ? 2 : 1;
    if (first < 0xc2 || first > 0xf4 || text.size() - i < static_cast<size_t>(more)) return false;
    uint32_t code = first & (0x3fU >> more);
    for (int k = 0; k < more; ++k) {
      const auto byte = static_cast<uint8_t>(text[i++]);
      if ((byte & 0xc0U) != 0x80) return false;
      code = code << 6 | (byte & 0x3fU);
    }
    const uint32_t least = more == 1 ? 0x80 : more == 2 ? 0x800 : 0x10000;
    const bool surrogate = code >= 0xd800 && code < 0xe000;
    if (code < least || code > 0x10ffff || surrogate) return false;
  }
  return true;
}

}  // namespace sotto
