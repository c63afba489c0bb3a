// Words of commands that a message tells people to type.
#pragma once

#include <string>
#include <string_view>

namespace sotto {

// The text as one word of a shell's command line: in quotes unless it needs none.
std::string shell_word(std::string_view text);

}  // namespace sotto
