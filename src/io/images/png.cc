#include "io/images/png.h"

#include "base/error.h"

#include <png.h>

namespace sotto::io {
namespace {

class PngReader {
 public:
  PngReader(std::string_view bytes, const std::string& where) : where_(where) {
    image_.version = PNG_IMAGE_VERSION;
    if (png_image_begin_read_from_memory(&image_, bytes.data(), bytes.size()) == 0) fail();
    if (int64_t{image_.width} * image_.height > kMaxPixels) {
      fail_user("{} is too large an image: {}×{} pixels", where_, image_.width, image_.height);
    }
    // Without it libpng takes 16-bit samples for linear light and darkens nothing but them.
    image_.flags |= PNG_IMAGE_FLAG_16BIT_sRGB;
  }
  ~PngReader() { png_image_free(&image_); }
  PngReader(const PngReader&) = delete;
  PngReader& operator=(const PngReader&) = delete;

  ImageInfo info() const { return {image_.width, image_.height, (image_.format & PNG_FORMAT_FLAG_COLOR) != 0 ? 3 : 1}; }

  Image decode(int64_t channels) {
    image_.format = channels == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
    Image result{image_.width, image_.height, channels, std::vector<uint8_t>(PNG_IMAGE_SIZE(image_))};
    const png_color white{255, 255, 255};
    if (png_image_finish_read(&image_, &white, result.pixels.data(), 0, nullptr) == 0) fail();
    return result;
  }

 private:
  [[noreturn]] void fail() const { fail_user("{} is a truncated or corrupt PNG ({})", where_, image_.message); }

  const std::string& where_;
  png_image image_{};
};

}  // namespace

bool is_png(std::string_view bytes) {
  return bytes.starts_with("\x89PNG\r\n");
}

ImageInfo probe_png(std::string_view bytes, const std::string& where) {
  return PngReader(bytes, where).info();
}

Image decode_png(std::string_view bytes, int64_t channels, const std::string& where) {
  return PngReader(bytes, where).decode(channels);
}

}  // namespace sotto::io
