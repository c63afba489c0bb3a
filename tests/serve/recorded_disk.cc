#include "recorded_disk.h"

#include "base/random.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <fstream>
#include <map>
#include <mutex>
#include <utility>

namespace sotto::test {
namespace {

std::mutex mutex;
std::vector<DiskStep> recorded_steps;
std::string recorded_folder;
std::atomic<bool> recording = false;

std::string path_of(int descriptor) {
  char buffer[4096];
  const std::string link = "/proc/self/fd/" + std::to_string(descriptor);
  const ssize_t size = ::readlink(link.c_str(), buffer, sizeof buffer);
  return size > 0 ? std::string(buffer, static_cast<size_t>(size)) : "";
}

std::string path_at(int folder, const char* name) {
  if (name[0] == '/') return name;
  if (folder == AT_FDCWD) return std::string(".") + "/" + name;
  return path_of(folder) + "/" + name;
}

// SQLite's shared memory is no memory of a disk's: it is made anew.
bool is_recorded(const std::string& path) {
  return recording && (path + "/").starts_with(recorded_folder) && !path.ends_with("-shm");
}

void note(DiskStep step) {
  if (!is_recorded(step.path)) return;
  const std::lock_guard lock(mutex);
  recorded_steps.push_back(std::move(step));
}

int64_t position_of(int descriptor) {
  const bool appends = (::fcntl(descriptor, F_GETFL) & O_APPEND) != 0;
  return ::lseek(descriptor, 0, appends ? SEEK_END : SEEK_CUR);
}

ssize_t note_write(int descriptor, int64_t offset, const void* bytes, ssize_t written) {
  if (!recording || written <= 0) return written;
  note({.kind = DiskStep::Kind::kWrite,
        .path = path_of(descriptor),
        .offset = offset,
        .bytes = std::string(static_cast<const char*>(bytes), static_cast<size_t>(written))});
  return written;
}

int note_sync(int descriptor, int failed) {
  if (!recording || failed != 0) return failed;
  struct stat status {};
  ::fstat(descriptor, &status);
  note({.kind = S_ISDIR(status.st_mode) ? DiskStep::Kind::kSyncFolder : DiskStep::Kind::kSync,
        .path = path_of(descriptor)});
  return 0;
}

int note_truncate(int descriptor, int64_t size, int failed) {
  if (recording && failed == 0) {
    note({.kind = DiskStep::Kind::kTruncate, .path = path_of(descriptor), .offset = size});
  }
  return failed;
}

int note_remove(const std::string& path, int failed) {
  if (recording && failed == 0) note({.kind = DiskStep::Kind::kRemove, .path = path});
  return failed;
}

// ---- a disk

struct File {
  std::string content;             // that is safe
  std::vector<DiskStep> unsynced;  // writes and truncations
};

struct NameChange {
  std::string path;
  int file = -1;  // -1: the name is gone
};

void apply_step(const DiskStep& step, std::string& content) {
  if (step.kind == DiskStep::Kind::kTruncate) {
    content.resize(static_cast<size_t>(step.offset), '\0');
    return;
  }
  const auto end = static_cast<size_t>(step.offset) + step.bytes.size();
  if (content.size() < end) content.resize(end, '\0');
  content.replace(static_cast<size_t>(step.offset), step.bytes.size(), step.bytes);
}

class Disk {
 public:
  void add(const std::string& path, std::string content) {
    files_.push_back({std::move(content), {}});
    live_[path] = safe_[path] = static_cast<int>(files_.size()) - 1;
  }

  void step(const DiskStep& step) {
    switch (step.kind) {
      case DiskStep::Kind::kWrite:
      case DiskStep::Kind::kTruncate:
        file(step.path).unsynced.push_back(step);
        break;
      case DiskStep::Kind::kSync: {
        File& synced = file(step.path);
        for (const DiskStep& change : synced.unsynced) apply_step(change, synced.content);
        synced.unsynced.clear();
        break;
      }
      case DiskStep::Kind::kSyncFolder:
        for (const NameChange& change : unsynced_[step.path]) rename(change, safe_);
        unsynced_[step.path].clear();
        break;
      case DiskStep::Kind::kRename: {
        const auto found = live_.find(step.path);
        if (found == live_.end()) break;
        const int moved = found->second;
        change({step.to, moved});
        change({step.path, -1});
        break;
      }
      case DiskStep::Kind::kRemove:
        folders_.erase(step.path);
        if (live_.contains(step.path)) change({step.path, -1});
        break;
      case DiskStep::Kind::kMakeFolder:
        folders_[step.path] = true;
        break;
    }
  }

  // Names and contents after a power cut.
  std::map<std::string, std::string> left(Arrived arrived, uint64_t seed) const {
    RandomStream random(seed, "power cut");
    auto names = safe_;
    const bool keeps_names = arrived == Arrived::kNames || arrived == Arrived::kAll;
    for (const auto& [folder, changes] : unsynced_) {
      size_t kept = keeps_names ? changes.size() : 0;
      if (arrived == Arrived::kSome) kept = static_cast<size_t>(random.below(changes.size() + 1));
      for (size_t i = 0; i < kept; ++i) rename(changes[i], names);
    }
    std::map<std::string, std::string> result;
    for (const auto& [path, number] : names) {
      const File& file = files_[static_cast<size_t>(number)];
      std::string content = file.content;
      for (DiskStep change : file.unsynced) {
        if (arrived == Arrived::kNothing || arrived == Arrived::kNames) break;
        if (arrived == Arrived::kSome) {
          if (random.bernoulli(0.5)) continue;
          if (random.bernoulli(0.2)) change.bytes.resize(static_cast<size_t>(random.below(change.bytes.size() + 1)));
        }
        apply_step(change, content);
      }
      result[path] = std::move(content);
    }
    return result;
  }
  const std::map<std::string, bool>& folders() const { return folders_; }

 private:
  static void rename(const NameChange& change, std::map<std::string, int>& names) {
    if (change.file < 0) {
      names.erase(change.path);
    } else {
      names[change.path] = change.file;
    }
  }
  void change(const NameChange& change) {
    rename(change, live_);
    unsynced_[fs::path(change.path).parent_path().string()].push_back(change);
  }
  File& file(const std::string& path) {
    const auto found = live_.find(path);
    if (found != live_.end()) return files_[static_cast<size_t>(found->second)];
    files_.emplace_back();
    change({path, static_cast<int>(files_.size()) - 1});
    return files_.back();
  }

  std::vector<File> files_;
  std::map<std::string, int> live_, safe_;  // names of files
  std::map<std::string, std::vector<NameChange>> unsynced_;
  std::map<std::string, bool> folders_;  // taken to be safe at once
};

}  // namespace

DiskRecorder::DiskRecorder(const fs::path& folder) {
  recorded_folder = folder.string() + "/";
  recorded_steps.clear();
  recording = true;
}

DiskRecorder::~DiskRecorder() {
  recording = false;
}

size_t DiskRecorder::steps() const {
  const std::lock_guard lock(mutex);
  return recorded_steps.size();
}

std::vector<DiskStep> DiskRecorder::all() const {
  const std::lock_guard lock(mutex);
  return recorded_steps;
}

void rebuild_after_power_cut(const std::vector<DiskStep>& steps, size_t count, Arrived arrived, uint64_t seed,
                             const fs::path& recorded, const fs::path& before, const fs::path& to) {
  Disk disk;
  fs::remove_all(to);
  fs::create_directories(to);
  const auto moved = [&](const std::string& path) { return to / fs::path(path).lexically_relative(recorded); };
  if (fs::exists(before)) {
    for (const auto& entry : fs::recursive_directory_iterator(before)) {
      const fs::path relative = entry.path().lexically_relative(before);
      if (entry.is_directory()) fs::create_directories(to / relative);
      if (entry.is_regular_file()) disk.add((recorded / relative).string(), read_file(entry.path()));
    }
  }
  for (size_t i = 0; i < count; ++i) disk.step(steps[i]);
  for (const auto& [folder, there] : disk.folders()) fs::create_directories(moved(folder));
  for (const auto& [path, content] : disk.left(arrived, seed)) {
    const fs::path file = moved(path);
    if (!fs::exists(file.parent_path())) continue;  // its folder was removed
    std::ofstream(file, std::ios::binary) << content;
  }
}

}  // namespace sotto::test

// Found before the C library's, by shared libraries too.
extern "C" {

using sotto::test::DiskStep;

ssize_t write(int file, const void* bytes, size_t size) {
  const int64_t offset = sotto::test::recording ? sotto::test::position_of(file) : 0;
  return sotto::test::note_write(file, offset, bytes, ::syscall(SYS_write, file, bytes, size));
}
ssize_t writev(int file, const iovec* parts, int count) {
  const int64_t offset = sotto::test::recording ? sotto::test::position_of(file) : 0;
  const ssize_t written = ::syscall(SYS_writev, file, parts, count);
  if (sotto::test::recording && written > 0) {
    std::string all;
    for (int i = 0; i < count; ++i) all.append(static_cast<const char*>(parts[i].iov_base), parts[i].iov_len);
    sotto::test::note_write(file, offset, all.data(), written);
  }
  return written;
}
ssize_t pwrite64(int file, const void* bytes, size_t size, off64_t offset) {
  return sotto::test::note_write(file, offset, bytes, ::syscall(SYS_pwrite64, file, bytes, size, offset));
}
ssize_t pwrite(int file, const void* bytes, size_t size, off_t offset) {
  return pwrite64(file, bytes, size, offset);
}
int fsync(int file) {
  return sotto::test::note_sync(file, static_cast<int>(::syscall(SYS_fsync, file)));
}
int fdatasync(int file) {
  return sotto::test::note_sync(file, static_cast<int>(::syscall(SYS_fdatasync, file)));
}
int ftruncate64(int file, off64_t size) noexcept {
  return sotto::test::note_truncate(file, size, static_cast<int>(::syscall(SYS_ftruncate, file, size)));
}
int ftruncate(int file, off_t size) noexcept {
  return ftruncate64(file, size);
}
int rename(const char* from, const char* to) noexcept {
  const auto failed = static_cast<int>(::syscall(SYS_rename, from, to));
  if (failed == 0) sotto::test::note({.kind = DiskStep::Kind::kRename, .path = from, .to = to});
  return failed;
}
int unlink(const char* path) noexcept {
  return sotto::test::note_remove(path, static_cast<int>(::syscall(SYS_unlink, path)));
}
int rmdir(const char* path) noexcept {
  return sotto::test::note_remove(path, static_cast<int>(::syscall(SYS_rmdir, path)));
}
int unlinkat(int folder, const char* name, int flags) noexcept {
  const std::string path = sotto::test::recording ? sotto::test::path_at(folder, name) : "";
  return sotto::test::note_remove(path, static_cast<int>(::syscall(SYS_unlinkat, folder, name, flags)));
}
int remove(const char* path) noexcept {
  struct stat status {};
  if (::lstat(path, &status) == 0 && S_ISDIR(status.st_mode)) return rmdir(path);
  return unlink(path);
}
int mkdir(const char* path, mode_t mode) noexcept {
  const auto failed = static_cast<int>(::syscall(SYS_mkdir, path, mode));
  if (failed == 0) sotto::test::note({.kind = DiskStep::Kind::kMakeFolder, .path = path});
  return failed;
}
}
