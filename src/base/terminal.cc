#include "base/terminal.h"

#include "base/log.h"
#include "base/text.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>

namespace sotto {
namespace {

constexpr int kDefaultWidth = 80;

bool colours_allowed() {
  static const bool allowed = [] {
    const char* refused = std::getenv("NO_COLOR");
    return is_interactive() && (refused == nullptr || *refused == '\0');
  }();
  return allowed;
}

const char* code(Style style) {
  switch (style) {
    case Style::kBold:
      return "1";
    case Style::kDim:
      return "2";
    case Style::kWarning:
      return "33";
  }
  return "0";
}

bool continues_character(char c) {
  return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U;
}

}  // namespace

int terminal_width() {
  winsize size = {};
  const bool known = ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : kDefaultWidth;
}

std::string styled(const std::string& text, Style style) {
  return colours_allowed() ? fmt::format("\x1b[{}m{}\x1b[0m", code(style), text) : text;
}

std::string cut_to_width(const std::string& text, int columns) {
  if (columns <= 0) return "";
  if (display_width(text) <= static_cast<size_t>(columns)) return text;
  size_t end = 0;
  for (int shown = 0; end < text.size(); ++end) {
    if (!continues_character(text[end]) && ++shown == columns) break;
  }
  return text.substr(0, end) + "…";
}

}  // namespace sotto
