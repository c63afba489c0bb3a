// Files in the formats the readers know, made for tests.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace sotto::test {

void write_bytes(const std::filesystem::path& path, const std::string& bytes);  // makes the folder too

std::string gzipped(const std::string& bytes);
std::string tar_gz(const std::map<std::string, std::string>& files);

// IDX of bytes.
std::string idx_bytes(const std::vector<uint32_t>& shape, const std::vector<uint8_t>& values);

// `samples` per pixel: 1 grey, 2 grey and alpha, 3 RGB, 4 RGBA.
std::string png_bytes(int width, int height, int samples, const std::vector<uint8_t>& pixels);
std::string png16_bytes(int width, int height, const std::vector<uint16_t>& grey);
std::string palette_png_bytes(int width, int height, const std::vector<uint8_t>& indices,
                              const std::vector<std::vector<uint8_t>>& colours);

// One colour everywhere: 1 sample = grey, 3 = RGB, 4 = inverted CMYK.
std::string jpeg_bytes(int width, int height, const std::vector<uint8_t>& colour);
std::string plain_png(int width, int height, const std::vector<uint8_t>& colour);

// Sets an environment variable while it lives.
class Environment {
 public:
  Environment(const std::string& name, const std::string& value);
  ~Environment();
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  std::string name_;
  std::string old_;
  bool was_set_;
};

}  // namespace sotto::test
