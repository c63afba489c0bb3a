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

// Writes to a temporary file beside `path`, syncs it, renames it into place and syncs the folder: readers see the old
// content or the new, never a part, and what was written survives a power cut. A full disk or an unwritable folder is a
// UserError and leaves `path` as it was. A link stays one: the file it leads to is written. A pipe or a device takes the
// content as it comes.
void write_file_atomically(const fs::path& path, std::string_view content);

// The same for writers that need a path: `write` fills the temporary file it is given. Pipes and devices are refused.
void write_file_atomically(const fs::path& path, const std::function<void(const fs::path& temporary)>& write);

// Appends the line and its line feed, and syncs them. A full disk is a UserError and leaves the file as it was; a power
// cut can leave a part of the line, without its line feed.
void append_line(const fs::path& path, std::string_view line);

// Creates the folder and its parents and makes them durable, or throws a UserError.
void make_folder(const fs::path& folder);

// Makes names in the folder durable that were created, renamed or removed. Folders that cannot be opened and file
// systems that sync no folders are left alone.
void sync_folder(const fs::path& folder);

// Lower-case hexadecimal SHA-256.
std::string sha256(std::string_view content);
std::string sha256_of_file(const fs::path& path);

// $SOTTO_HOME, or ~/.local/share/sotto: installed datasets, weights, and caches of decoded data.
fs::path data_home();

}  // namespace sotto
