// A folder for the time of a benchmark.
#pragma once

#include <filesystem>
#include <string>

namespace sotto::bench {

// Made empty, and removed with all that is in it.
class TemporaryFolder {
 public:
  // Below `parent`; "" is where temporary files go.
  explicit TemporaryFolder(const std::filesystem::path& parent = {});
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace sotto::bench
