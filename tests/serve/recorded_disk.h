// What a program asks of its disk, recorded, and what would be left of it after a power cut at any moment.
//
// In a program that links recorded_disk.cc the C library's write, fsync, rename and the like keep a list of what they
// do below one folder. A power cut may take whatever was not synced: bytes until their file is, names until their folder
// is. What was not synced may also have arrived, all of it or a part, in any order.
#pragma once

#include "base/files.h"

#include <cstdint>
#include <string>
#include <vector>

namespace sotto::test {

struct DiskStep {
  enum class Kind { kWrite, kTruncate, kSync, kSyncFolder, kRename, kRemove, kMakeFolder };
  Kind kind = Kind::kWrite;
  std::string path;
  std::string to = {};     // kRename
  int64_t offset = 0;      // kWrite; kTruncate: the new size
  std::string bytes = {};  // kWrite
};

// One at a time.
class DiskRecorder {
 public:
  explicit DiskRecorder(const fs::path& folder);
  ~DiskRecorder();
  DiskRecorder(const DiskRecorder&) = delete;
  DiskRecorder& operator=(const DiskRecorder&) = delete;

  // So far.
  size_t steps() const;
  std::vector<DiskStep> all() const;
};

// What of that which was not synced has arrived all the same.
enum class Arrived {
  kNothing,
  kBytes,  // and no names
  kNames,  // and no bytes: files that are there and empty
  kAll,    // as after a kill
  kSome    // at random
};

// Makes `to` what the recorded folder is found to be after a power cut behind so many steps. `before` is what was there
// when recording began.
void rebuild_after_power_cut(const std::vector<DiskStep>& steps, size_t count, Arrived arrived, uint64_t seed,
                             const fs::path& recorded, const fs::path& before, const fs::path& to);

}  // namespace sotto::test
