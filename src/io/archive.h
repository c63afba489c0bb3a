// Files inside archives (tar, zip, deb), whatever the compression, without unpacking to disk.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

namespace sotto::io {

// `bytes` may be moved from.
using ArchiveVisitor = std::function<void(const std::string& name, std::string& bytes)>;

// Calls `visit` for every regular file, in archive order; names have no leading "./". A truncated, corrupt or foreign
// file is a UserError.
void visit_archive(const std::filesystem::path& path, const ArchiveVisitor& visit);

// The same for an archive held in memory; `where` names it in errors.
void visit_archive(std::string_view archive, const std::string& where, const ArchiveVisitor& visit);

// True for names such as x.tar.gz, x.tgz, x.tar, x.zip.
bool has_archive_name(const std::filesystem::path& path);

}  // namespace sotto::io
