#include "base/files.h"

#include "base/error.h"
#include "base/sha256.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <vector>

namespace sotto {
namespace {

void sync_to_disk(const fs::path& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return;
  const int failed = ::fsync(descriptor);
  const int error = errno;
  ::close(descriptor);
  if (failed != 0 && error != EINVAL) fail_user("cannot write {}: {}", path.string(), std::strerror(error));
}

// The error's number, or 0.
int write_all(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return written < 0 ? errno : ENOSPC;
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return 0;
}

// Where a name leads through links; the name itself if it is none.
fs::path end_of_links(fs::path path) {
  constexpr int kMostLinks = 40;
  std::error_code error;
  for (int i = 0; i < kMostLinks && fs::is_symlink(path, error); ++i) {
    const fs::path target = fs::read_symlink(path, error);
    if (error) break;
    path = path.parent_path() / target;
  }
  return path;
}

// A pipe or a device: it takes what is written and cannot be replaced by a file.
bool is_special(const fs::path& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  return !error && fs::exists(status) && !fs::is_regular_file(status) && !fs::is_directory(status);
}

void write_special(const fs::path& path, std::string_view content) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  const int error = file < 0 ? errno : write_all(file, content);
  if (file >= 0) ::close(file);
  if (error != 0) fail_user("cannot write {}: {}", path.string(), std::strerror(error));
}

// A terminal ends; /dev/zero does not.
std::string read_device(const fs::path& path, std::istream& stream) {
  constexpr size_t kMost = 1 << 24;
  std::string content(kMost, '\0');
  stream.read(content.data(), kMost);
  content.resize(static_cast<size_t>(stream.gcount()));
  if (content.size() == kMost) fail_user("cannot read {}: it is a device that does not end", path.string());
  return content;
}

}  // namespace

std::string read_file(const fs::path& path) {
  std::ifstream stream(path, std::ios::binary);
  if (!stream || fs::is_directory(path)) {
    fail_user("cannot read {}: {}", path.string(), fs::is_directory(path) ? "it is a folder" : std::strerror(errno));
  }
  if (fs::is_character_file(path)) return read_device(path, stream);
  std::ostringstream content;
  content << stream.rdbuf();
  return std::move(content).str();
}

void write_file_atomically(const fs::path& name, const std::function<void(const fs::path&)>& write) {
  const fs::path path = end_of_links(name);
  if (is_special(path)) fail_user("cannot write {}: it is not a regular file", name.string());
  const fs::path temporary = path.string() + fmt::format(".{}.tmp", ::getpid());
  try {
    write(temporary);
    sync_to_disk(temporary);
    fs::rename(temporary, path);
    sync_folder(path.parent_path());
  } catch (const fs::filesystem_error& error) {
    std::error_code ignored;
    fs::remove(temporary, ignored);
    fail_user("cannot write {}: {}", path.string(), error.code().message());
  } catch (...) {
    std::error_code ignored;
    fs::remove(temporary, ignored);
    throw;
  }
}

void write_file_atomically(const fs::path& path, std::string_view content) {
  if (is_special(path)) return write_special(path, content);
  write_file_atomically(path, [&](const fs::path& temporary) {
    std::ofstream stream(temporary, std::ios::binary);
    stream.write(content.data(), static_cast<std::streamsize>(content.size()));
    stream.close();
    if (!stream) fail_user("cannot write {}: {}", path.string(), std::strerror(errno));
  });
}

void append_line(const fs::path& path, std::string_view line) {
  const int file = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
  if (file < 0) fail_user("cannot write {}: {}", path.string(), std::strerror(errno));
  const off_t before = ::lseek(file, 0, SEEK_END);
  int error = write_all(file, std::string(line) + "\n");
  if (error == 0 && ::fsync(file) != 0 && errno != EINVAL) error = errno;
  const bool taken_back = error == 0 || ::ftruncate(file, before) == 0;
  ::close(file);
  if (error != 0) {
    fail_user("cannot write {}: {}{}", path.string(), std::strerror(error),
              taken_back ? "" : "; its last line is incomplete");
  }
  if (before == 0) sync_folder(path.parent_path());
}

void make_folder(const fs::path& folder) {
  std::error_code error;
  std::vector<fs::path> missing;
  for (fs::path part = folder; !part.empty() && !fs::exists(part, error); part = part.parent_path()) {
    missing.push_back(part);
  }
  fs::create_directories(folder, error);
  if (error) fail_user("cannot create the folder {}: {}", folder.string(), error.message());
  for (auto made = missing.rbegin(); made != missing.rend(); ++made) sync_folder(made->parent_path());
}

void sync_folder(const fs::path& folder) {
  sync_to_disk(folder.empty() ? fs::path(".") : folder);
}

std::string sha256(std::string_view content) {
  Sha256 hash;
  hash.update(content);
  return hash.hex();
}

std::string sha256_of_file(const fs::path& path) {
  std::ifstream stream(path, std::ios::binary);
  if (!stream) fail_user("cannot read {}: {}", path.string(), std::strerror(errno));
  Sha256 hash;
  std::string buffer(1 << 20, '\0');
  while (stream.read(buffer.data(), static_cast<std::streamsize>(buffer.size())) || stream.gcount() > 0) {
    hash.update(std::string_view(buffer).substr(0, static_cast<size_t>(stream.gcount())));
  }
  return hash.hex();
}

fs::path data_home() {
  if (const char* home = std::getenv("SOTTO_HOME"); home != nullptr && *home != '\0') return home;
  if (const char* home = std::getenv("HOME"); home != nullptr && *home != '\0') {
    return fs::path(home) / ".local/share/sotto";
  }
  fail_user("neither $SOTTO_HOME nor $HOME is set, so there is no place for datasets and caches; set one of them");
}

}  // namespace sotto
