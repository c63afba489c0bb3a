#include "base/files.h"

#include "base/error.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <sstream>

namespace sotto {
namespace {

class Sha256 {
 public:
  Sha256() : context_(EVP_MD_CTX_new(), EVP_MD_CTX_free) { EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr); }
  void update(std::string_view bytes) { EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()); }
  std::string hex() {
    std::array<unsigned char, 32> digest{};
    EVP_DigestFinal_ex(context_.get(), digest.data(), nullptr);
    std::string text;
    for (const unsigned char byte : digest) text += fmt::format("{:02x}", byte);
    return text;
  }

 private:
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context_;
};

void sync_to_disk(const fs::path& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return;
  const int failed = ::fsync(descriptor);
  const int error = errno;
  ::close(descriptor);
  if (failed != 0 && error != EINVAL) fail_user("cannot write {}: {}", path.string(), std::strerror(error));
}

}  // namespace

std::string read_file(const fs::path& path) {
  std::ifstream stream(path, std::ios::binary);
  if (!stream || fs::is_directory(path)) {
    fail_user("cannot read {}: {}", path.string(), fs::is_directory(path) ? "it is a folder" : std::strerror(errno));
  }
  std::ostringstream content;
  content << stream.rdbuf();
  return std::move(content).str();
}

void write_file_atomically(const fs::path& path, const std::function<void(const fs::path&)>& write) {
  const fs::path temporary = path.string() + fmt::format(".{}.tmp", ::getpid());
  try {
    write(temporary);
    sync_to_disk(temporary);
    fs::rename(temporary, path);
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
  write_file_atomically(path, [&](const fs::path& temporary) {
    std::ofstream stream(temporary, std::ios::binary);
    stream.write(content.data(), static_cast<std::streamsize>(content.size()));
    stream.close();
    if (!stream) fail_user("cannot write {}: {}", path.string(), std::strerror(errno));
  });
}

void make_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) fail_user("cannot create the folder {}: {}", folder.string(), error.message());
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
