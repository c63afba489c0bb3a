#include "base/printable.h"

#include <fmt/format.h>

namespace sotto {
namespace {

bool is_control(unsigned char byte) {
  return byte < 0x20 || byte == 0x7f;
}

// U+0080 to U+009F, which some terminals obey too.
bool is_late_control(std::string_view rest) {
  return rest.size() >= 2 && rest[0] == '\xc2' && static_cast<unsigned char>(rest[1]) < 0xa0;
}

}  // namespace

std::string printable(std::string_view text) {
  std::string line;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (text[i] == '\n') {
      line += "\\n";
    } else if (is_control(byte)) {
      line += fmt::format("\\x{:02x}", byte);
    } else if (is_late_control(text.substr(i))) {
      line += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[++i]));
    } else {
      line += text[i];
    }
  }
  return line;
}

}  // namespace sotto
