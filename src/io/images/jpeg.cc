#include "io/images/jpeg.h"

#include "base/error.h"

#include <turbojpeg.h>

#include <memory>

namespace sotto::io {
namespace {

struct Header {
  int width = 0;
  int height = 0;
  int colorspace = 0;

  bool is_cmyk() const { return colorspace == TJCS_CMYK || colorspace == TJCS_YCCK; }
};

class JpegReader {
 public:
  JpegReader(std::string_view bytes, const std::string& where)
      : bytes_(bytes), where_(where), handle_(tjInitDecompress(), tjDestroy) {
    int subsampling = 0;
    if (tjDecompressHeader3(handle_.get(), data(), bytes_.size(), &header_.width, &header_.height, &subsampling,
                            &header_.colorspace) != 0) {
      fail();
    }
    // A file cut before its image passes for a valid file of tables alone.
    if (header_.width <= 0 || header_.height <= 0) fail_user("{} is a truncated or corrupt JPEG (no image)", where_);
    if (int64_t{header_.width} * header_.height > kMaxPixels) {
      fail_user("{} is too large an image: {}×{} pixels", where_, header_.width, header_.height);
    }
  }

  const Header& header() const { return header_; }

  Image decode(int pixel_format, int denominator) {
    const int width = (header_.width + denominator - 1) / denominator;
    const int height = (header_.height + denominator - 1) / denominator;
    const int samples = tjPixelSize[pixel_format];
    Image image{width, height, samples, std::vector<uint8_t>(static_cast<size_t>(width) * height * samples)};
    const int failed = tjDecompress2(handle_.get(), data(), bytes_.size(), image.pixels.data(), width, 0, height,
                                     pixel_format, TJFLAG_ACCURATEDCT);
    // Stray bytes between markers are harmless warnings; missing image data is not.
    const bool harmless =
        tjGetErrorCode(handle_.get()) == TJERR_WARNING &&
        std::string_view(tjGetErrorStr2(handle_.get())).find("remature end") == std::string_view::npos;
    if (failed != 0 && !harmless) fail();
    return image;
  }

 private:
  const unsigned char* data() const { return reinterpret_cast<const unsigned char*>(bytes_.data()); }
  [[noreturn]] void fail() const {
    fail_user("{} is a truncated or corrupt JPEG ({})", where_, tjGetErrorStr2(handle_.get()));
  }

  std::string_view bytes_;
  const std::string& where_;
  std::unique_ptr<void, decltype(&tjDestroy)> handle_;
  Header header_;
};

int shrink_denominator(const Header& header, int64_t min_side) {
  int denominator = 1;
  while (min_side > 0 && denominator < 8 && header.width / (denominator * 2) >= min_side &&
         header.height / (denominator * 2) >= min_side) {
    denominator *= 2;
  }
  return denominator;
}

uint8_t luma(int red, int green, int blue) {
  return static_cast<uint8_t>((299 * red + 587 * green + 114 * blue + 500) / 1000);
}

// CMYK files store inverted ink, as Adobe's do: 255 is none.
Image from_inverted_cmyk(const Image& cmyk, int64_t channels) {
  Image image{cmyk.width, cmyk.height, channels, {}};
  image.pixels.reserve(static_cast<size_t>(cmyk.width * cmyk.height * channels));
  for (size_t i = 0; i < cmyk.pixels.size(); i += 4) {
    const int black = cmyk.pixels[i + 3];
    const auto ink = [&](size_t c) { return (cmyk.pixels[i + c] * black + 127) / 255; };
    if (channels == 1) {
      image.pixels.push_back(luma(ink(0), ink(1), ink(2)));
    } else {
      for (size_t c = 0; c < 3; ++c) image.pixels.push_back(static_cast<uint8_t>(ink(c)));
    }
  }
  return image;
}

}  // namespace

bool is_jpeg(std::string_view bytes) {
  return bytes.starts_with("\xFF\xD8\xFF");
}

ImageInfo probe_jpeg(std::string_view bytes, const std::string& where) {
  const Header header = JpegReader(bytes, where).header();
  return {header.width, header.height, header.colorspace == TJCS_GRAY ? 1 : 3};
}

Image decode_jpeg(std::string_view bytes, int64_t channels, int64_t min_side, const std::string& where) {
  JpegReader reader(bytes, where);
  const int denominator = shrink_denominator(reader.header(), min_side);
  if (reader.header().is_cmyk()) return from_inverted_cmyk(reader.decode(TJPF_CMYK, denominator), channels);
  return reader.decode(channels == 1 ? TJPF_GRAY : TJPF_RGB, denominator);
}

}  // namespace sotto::io
