// Files: whole reads, atomic writes, checksums, and where Sotto keeps its things.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

namespace sotto {

namespace fs = std::filesystem;

// The whole file. A missing or unreadable file is a UserError.
std::string read_file(const fs::path& path);

// Writes to a temporary file beside `path`, syncs it and renames it into place: readers see the old content or the new,
// never a part. A full disk or an unwritable folder is a UserError and leaves `path` as it was.
void write_file_atomically(const fs::path& path, std::string_view content);

// The same for writers that need a path: `write` fills the temporary file it is given.
void write_file_atomically(const fs::path& path, const std::function<void(const fs::path& temporary)>& write);

// Creates the folder and its parents, or throws a UserError.
void make_folder(const fs::path& folder);

// Lower-case hexadecimal SHA-256.
std::string sha256(std::string_view content);
std::string sha256_of_file(const fs::path& path);

// $SOTTO_HOME, or ~/.local/share/sotto: installed datasets, weights, and caches of decoded data.
fs::path data_home();

}  // namespace sotto
