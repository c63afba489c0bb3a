#include "report/png.h"

#include "base/error.h"
#include "base/files.h"

#include <ATen/ATen.h>

#include <png.h>

namespace sotto::report {
namespace {

png_uint_32 png_format(int64_t channels) {
  switch (channels) {
    case 1:
      return PNG_FORMAT_GRAY;
    case 3:
      return PNG_FORMAT_RGB;
    default:
      SOTTO_INVARIANT(channels == 4);
      return PNG_FORMAT_RGBA;
  }
}

}  // namespace

void write_png(const fs::path& path, const at::Tensor& image) {
  SOTTO_INVARIANT(image.dim() == 3 && image.scalar_type() == at::kByte && image.numel() > 0);
  const at::Tensor pixels = image.contiguous();
  write_file_atomically(path, [&](const fs::path& temporary) {
    png_image header{};
    header.version = PNG_IMAGE_VERSION;
    header.height = static_cast<png_uint_32>(pixels.size(0));
    header.width = static_cast<png_uint_32>(pixels.size(1));
    header.format = png_format(pixels.size(2));
    if (png_image_write_to_file(&header, temporary.c_str(), 0, pixels.data_ptr<uint8_t>(), 0, nullptr) == 0) {
      fail_user("{}: cannot write the picture: {}", path.string(), header.message);
    }
  });
}

at::Tensor image_grid(const at::Tensor& images, int64_t columns, int64_t padding) {
  SOTTO_INVARIANT(images.dim() == 4 && images.scalar_type() == at::kByte && images.size(0) > 0 && columns > 0);
  const int64_t rows = (images.size(0) + columns - 1) / columns;
  const int64_t pitch_y = images.size(2) + padding;
  const int64_t pitch_x = images.size(3) + padding;
  at::Tensor grid = at::full({rows * pitch_y + padding, columns * pitch_x + padding, images.size(1)}, 255, at::kByte);
  for (int64_t i = 0; i < images.size(0); ++i) {
    grid.narrow(0, padding + i / columns * pitch_y, images.size(2))
        .narrow(1, padding + i % columns * pitch_x, images.size(3))
        .copy_(images[i].permute({1, 2, 0}));
  }
  return grid;
}

}  // namespace sotto::report
