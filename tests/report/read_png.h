// Reads a PNG back, independently of the writer.
#pragma once

#include <ATen/ATen.h>

#include <gtest/gtest.h>
#include <png.h>

#include <filesystem>

namespace sotto::report {

// uint8 [H, W, C] in the given libpng format of C channels.
inline at::Tensor read_png(const std::filesystem::path& path, png_uint_32 format, int64_t channels) {
  png_image header{};
  header.version = PNG_IMAGE_VERSION;
  EXPECT_NE(png_image_begin_read_from_file(&header, path.c_str()), 0) << header.message;
  header.format = format;
  at::Tensor pixels = at::empty({header.height, header.width, channels}, at::kByte);
  EXPECT_NE(png_image_finish_read(&header, nullptr, pixels.data_ptr<uint8_t>(), 0, nullptr), 0) << header.message;
  return pixels;
}

// A folder that is gone after the test.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = std::filesystem::temp_directory_path() / "sotto-report-XXXXXX";
    path_ = mkdtemp(name.data());
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  std::filesystem::path operator/(const char* name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

}  // namespace sotto::report
