#include "artifacts/run_lock.h"

#include "base/files.h"
#include "base/launch.h"
#include "base/text.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <set>
#include <string>
#include <vector>

namespace sotto::artifacts {
namespace {

using nlohmann::json;

constexpr const char* kLock = "lock";

struct Owner {
  std::string host;
  int64_t pid = 0;
  std::string started;  // in the kernel's own count
};

// Field 22 of /proc/PID/stat; "" if there is no such process, or if it has ended and only its number is kept (a zombie).
// The name in front may hold anything but ends in ')'.
std::string start_of(int64_t pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  std::string text;
  std::getline(file, text);
  const size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return "";
  const std::vector<std::string> fields = split(text.substr(name_end + 2), ' ');
  const bool ended = fields.front() == "Z" || fields.front() == "X";
  return !ended && fields.size() > 19 ? fields[19] : "";
}

std::optional<Owner> owner_in(const std::string& text) {
  const json value = json::parse(text, nullptr, false);
  if (!value.is_object() || !value.contains("host") || !value.contains("pid") || !value.contains("started")) {
    return std::nullopt;
  }
  return Owner{value["host"], value["pid"], value["started"]};
}

std::optional<Owner> owner_in(int file) {
  std::string text(4096, '\0');
  const ssize_t length = ::pread(file, text.data(), text.size(), 0);
  return owner_in(text.substr(0, static_cast<size_t>(std::max<ssize_t>(length, 0))));
}

std::string to_text(const std::optional<Owner>& owner) {
  return owner ? fmt::format("process {} on {}", owner->pid, owner->host) : "another process";
}

bool is_dead_here(const Owner& owner) {
  return owner.host == host_name() && start_of(owner.pid) != owner.started;
}

bool is_self(const Owner& owner) {
  return owner.host == host_name() && owner.pid == ::getpid() && start_of(owner.pid) == owner.started;
}

// Asking the kernel's list instead of trying the lock: even a short try could refuse a run that is about to start.
bool is_flocked(const fs::path& file) {
  struct stat status = {};
  if (::stat(file.c_str(), &status) != 0) return false;
  const std::string place =
      fmt::format(" {:02x}:{:02x}:{} ", major(status.st_dev), minor(status.st_dev), status.st_ino);
  std::ifstream locks("/proc/locks");
  for (std::string line; std::getline(locks, line);) {
    if (line.find("FLOCK") != std::string::npos && line.find(place) != std::string::npos) return true;
  }
  return false;
}

}  // namespace

fs::path lock_file(const fs::path& folder) {
  return folder / kLock;
}

RunLock::RunLock(const fs::path& folder) {
  const fs::path path = lock_file(folder);
  file_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (file_ < 0) fail_user("cannot write to {}: {}", folder.string(), std::strerror(errno));
  const bool locked = ::flock(file_, LOCK_EX | LOCK_NB) == 0;
  const int why = errno;
  const std::optional<Owner> owner = owner_in(file_);
  const bool over = !owner || is_self(*owner) || is_dead_here(*owner) ||
                    (owner->host != host_name() && locks_reach_other_hosts(folder));
  if (locked && over) {
    const std::string self =
        json{{"host", host_name()}, {"pid", ::getpid()}, {"started", start_of(::getpid())}}.dump() + "\n";
    if (::ftruncate(file_, 0) == 0 && ::pwrite(file_, self.data(), self.size(), 0) >= 0) return;
  }
  ::close(file_);
  if (locked && over) fail_user("cannot write to {}: {}", path.string(), std::strerror(errno));
  if (locked) {
    throw RunBusy(
        fmt::format("{} is being written by {}, as far as can be known from here; if that process is gone, remove {}",
                    folder.string(), to_text(owner), path.string()));
  }
  if (why == EWOULDBLOCK) {
    throw RunBusy(fmt::format("{} is being written by another process{}", folder.string(),
                              owner ? fmt::format(": {}", to_text(owner)) : ""));
  }
  fail_user("the file system of {} cannot lock files ({}); use another folder, or mount it with locks", folder.string(),
            std::strerror(why));
}

RunLock::~RunLock() {
  // Whoever comes next need not ask whether this process lives.
  const bool cleared = ::ftruncate(file_, 0) == 0;
  ::close(file_);
  static_cast<void>(cleared);
}

std::optional<std::string> lock_holder(const fs::path& folder) {
  const fs::path path = lock_file(folder);
  std::error_code error;
  if (!fs::exists(path, error)) return std::nullopt;
  std::ifstream file(path);
  std::string text;
  std::getline(file, text);
  const auto owner = owner_in(text);
  if (is_flocked(path)) return to_text(owner);
  if (!owner || owner->host == host_name()) return std::nullopt;  // a process here would hold the kernel's lock
  return to_text(owner);
}

bool locks_reach_other_hosts(const fs::path& folder, const fs::path& mounts) {
  std::error_code error;
  const std::string path = fs::weakly_canonical(fs::absolute(folder), error).string();
  std::string point, type, options;
  std::ifstream file(mounts);
  for (std::string line; std::getline(file, line);) {
    const std::vector<std::string> fields = split(line, ' ');
    const auto dash = std::find(fields.begin(), fields.end(), "-");
    if (fields.size() < 10 || fields.end() - dash < 4) continue;
    const std::string& at = fields[4];
    const bool inside = at == "/" || path == at || path.starts_with(at + "/");
    if (!inside || at.size() < point.size()) continue;
    point = at;
    type = *(dash + 1);
    options = "," + *(dash + 3) + "," + fields[5] + ",";
  }
  const auto has = [&](const std::string& option) { return options.find("," + option + ",") != std::string::npos; };
  if (type == "nfs" || type == "nfs4") return !has("nolock") && !has("local_lock=flock") && !has("local_lock=all");
  if (type == "lustre") return has("flock");
  // Disks of this machine, which no other has, and file systems whose locks are everybody's.
  static const std::set<std::string> known = {"ext2", "ext3",  "ext4",    "xfs",  "btrfs", "zfs",
                                              "f2fs", "tmpfs", "overlay", "ceph", "gpfs"};
  return known.contains(type);
}

}  // namespace sotto::artifacts
