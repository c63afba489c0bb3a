// One writing process per run directory, also where several machines share it.
//
// The file `lock` is locked by the kernel (flock) and names its owner: host, process, start of the process. A lock is
// somebody's as long as the kernel says so. If it does not, the owner that is named may have died without a word: on
// this machine that is known, by the process. On another it follows from the kernel's lock being free if locks of this
// file system reach other machines, as they do over NFS unless it is mounted with nolock or local_lock; where they do not
// or nobody knows, the lock is believed to be held until somebody removes the file.
#pragma once

#include "base/error.h"

#include <filesystem>
#include <optional>
#include <string>

namespace sotto::artifacts {

// Another process is at work there.
class RunBusy : public UserError {
 public:
  using UserError::UserError;
};

class RunLock {
 public:
  // RunBusy if another process has it. The folder must exist.
  explicit RunLock(const std::filesystem::path& folder);
  ~RunLock();
  RunLock(const RunLock&) = delete;
  RunLock& operator=(const RunLock&) = delete;

 private:
  int file_ = -1;
};

// Its file in this folder.
std::filesystem::path lock_file(const std::filesystem::path& folder);

// Who has the lock of this folder, for people: "process 17 on node3"; nothing if nobody has. Does not try the lock, so
// that nobody else is refused meanwhile.
std::optional<std::string> lock_holder(const std::filesystem::path& folder);

// Whether locks of files there are seen by other machines that have the same folder, by what /proc says of its mount.
// `mounts` is that file.
bool locks_reach_other_hosts(const std::filesystem::path& folder,
                             const std::filesystem::path& mounts = "/proc/self/mountinfo");

}  // namespace sotto::artifacts
