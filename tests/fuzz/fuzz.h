// What every fuzzer of a decoder has: an entry that libFuzzer and main.cc call alike, and examples to begin from.
//
// A decoder of bytes from outside returns or refuses them by an exception that is meant for whoever sent them. Any other
// exception, a crash, more than five seconds or 256 MB for a small input is a defect.
#pragma once

#include "base/error.h"
#include "base/files.h"
#include "base/named_tensors.h"

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace sotto::fuzz {

// Inputs that are in order, or nearly. Called once.
std::vector<std::string> seeds();

inline std::string bytes_of(const uint8_t* data, size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

// Runs the decoder; what it throws beside the exceptions it may throw goes on.
template <typename... Refusals, typename Decode>
int attempt(const Decode& decode) {
  try {
    try {
      decode();
    } catch (const UserError&) {
    }
  } catch (const std::exception& error) {
    if (!(... || (dynamic_cast<const Refusals*>(&error) != nullptr))) throw;
  }
  return 0;
}

// A folder in memory, for decoders that want files; the same on every call, and removed in the end.
class Scratch {
 public:
  Scratch() : path_(fs::path("/dev/shm") / ("sotto-fuzz-" + std::to_string(::getpid()))) {
    fs::create_directories(path_);
  }
  ~Scratch() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};
inline const fs::path& scratch() {
  static const Scratch folder;
  return folder.path();
}
inline fs::path as_file(const std::string& name, std::string_view bytes) {
  const fs::path file = scratch() / name;
  if (file.parent_path() != scratch()) fs::create_directories(file.parent_path());
  std::ofstream(file, std::ios::binary | std::ios::trunc)
      .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  return file;
}

// Several files in one input: they follow each other, each but the last ends in this line.
inline constexpr std::string_view kNextFile = "\n%%\n";
inline std::vector<std::string> parts(std::string_view input, size_t count) {
  std::vector<std::string> found;
  while (found.size() + 1 < count) {
    const size_t end = input.find(kNextFile);
    found.emplace_back(input.substr(0, end));
    input = end == input.npos ? std::string_view() : input.substr(end + kNextFile.size());
  }
  found.emplace_back(input);
  return found;
}

// Reads every byte, so that tensors which reach beyond their memory are found out.
void touch(const NamedTensors& tensors);

}  // namespace sotto::fuzz
