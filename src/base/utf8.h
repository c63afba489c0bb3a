// Text that can be written into JSON and shown to people.
#pragma once

#include <string_view>

namespace sotto {

// Whether every byte is part of a well-formed UTF-8 character.
bool is_utf8(std::string_view text);

}  // namespace sotto
