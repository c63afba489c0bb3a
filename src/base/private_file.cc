#include "base/private_file.h"

#include "base/error.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace sotto {

void write_private_file(const fs::path& path, std::string_view content) {
  write_file_atomically(path, [&](const fs::path& temporary) {
    ::unlink(temporary.c_str());  // one that a killed process left, with whatever mode
    const int file = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR);
    int error = file < 0 ? errno : 0;
    for (std::string_view rest = content; error == 0 && !rest.empty();) {
      const ssize_t written = ::write(file, rest.data(), rest.size());
      if (written >= 0) {
        rest.remove_prefix(static_cast<size_t>(written));
      } else if (errno != EINTR) {
        error = errno;
      }
    }
    if (file >= 0 && ::close(file) != 0 && error == 0) error = errno;
    if (error != 0) fail_user("cannot write {}: {}", path.string(), std::strerror(error));
  });
}

}  // namespace sotto
