// Which files and folders were synced: in a program that includes this header, once, fsync keeps a list.
#pragma once

#include <sys/syscall.h>
#include <unistd.h>

#include <filesystem>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace sotto::test {

class SyncedPaths {
 public:
  static SyncedPaths& all() {
    static SyncedPaths paths;
    return paths;
  }
  void add(int descriptor) {
    std::error_code ignored;
    const auto link = std::filesystem::path("/proc/self/fd") / std::to_string(descriptor);
    const std::lock_guard lock(mutex_);
    paths_.push_back(std::filesystem::read_symlink(link, ignored));
  }
  // Those since the last call, in order.
  std::vector<std::filesystem::path> take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(paths_, {});
  }

 private:
  std::mutex mutex_;
  std::vector<std::filesystem::path> paths_;
};

}  // namespace sotto::test

// Found before the C library's.
extern "C" int fsync(int descriptor) {
  sotto::test::SyncedPaths::all().add(descriptor);
  return static_cast<int>(::syscall(SYS_fsync, descriptor));
}
