#include "bench/temporary_folder.h"

#include "base/files.h"

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <system_error>

namespace sotto::bench {

namespace {

std::atomic<int> made = 0;

}  // namespace

TemporaryFolder::TemporaryFolder(const fs::path& parent)
    : path_((parent.empty() ? fs::temp_directory_path() : parent) /
            fmt::format("sotto-bench-{}-{}", ::getpid(), made++)) {
  fs::remove_all(path_);
  make_folder(path_);
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

}  // namespace sotto::bench
