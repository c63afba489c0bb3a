// Text from outside, made harmless for a terminal or a log.
#pragma once

#include <string>
#include <string_view>

namespace sotto {

// One line without control characters: "\n" for a line break, "\x1b" for an escape, and so on. All else stays.
std::string printable(std::string_view text);

}  // namespace sotto
