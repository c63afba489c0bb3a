// How many files and connections a process may have open.
#pragma once

#include <cstdint>

namespace sotto {

// Raises this process's limit to the most that the machine allows it, and says what that is.
int64_t raise_open_files_limit();

}  // namespace sotto
