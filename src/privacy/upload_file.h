// Uploads in files, through the door of privacy/wire.h.
#pragma once

#include "privacy/wire.h"

#include <filesystem>

namespace sotto::privacy {

// As decode. The file is mapped, not read: its tensors take memory only while they are looked at.
Upload decode_file(const std::filesystem::path& file, const UploadShape& shape);

}  // namespace sotto::privacy
