// Files that nobody but their owner may read: keys, tokens.
#pragma once

#include "base/files.h"

#include <string_view>

namespace sotto {

// As write_file_atomically, with mode 0600 from the first moment on, whatever the umask and whatever stood there before.
void write_private_file(const fs::path& path, std::string_view content);

}  // namespace sotto
