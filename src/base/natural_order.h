// The order that people put names in.
#pragma once

#include <string_view>

namespace sotto {

// Whether a stands before b where digits are read as numbers: "client 2" before "client 10". Names that differ in
// nothing but leading zeros are in the order of their characters.
bool naturally_before(std::string_view a, std::string_view b);

}  // namespace sotto
