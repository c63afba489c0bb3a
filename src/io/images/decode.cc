#include "io/images/decode.h"

#include "base/error.h"
#include "base/parallel.h"
#include "base/progress.h"
#include "base/text.h"
#include "io/images/image.h"
#include "io/images/jpeg.h"
#include "io/images/png.h"
#include "io/images/resample.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <string_view>

namespace sotto::io {
namespace {

constexpr int64_t kChunk = 64;
// A decoder may shrink down to this many times the wanted size; the resampler does the rest better.
constexpr int64_t kShrinkMargin = 2;

ImageInfo probe(std::string_view bytes, const std::string& where) {
  if (is_png(bytes)) return probe_png(bytes, where);
  if (is_jpeg(bytes)) return probe_jpeg(bytes, where);
  fail_user("{} is neither a PNG nor a JPEG image", where);
}

Image decode(std::string_view bytes, int64_t channels, int64_t min_side, const std::string& where) {
  return is_png(bytes) ? decode_png(bytes, channels, where) : decode_jpeg(bytes, channels, min_side, where);
}

void for_each_in_parallel(int64_t count, const std::string& title, const std::function<void(int64_t)>& work) {
  Progress progress(title, count);
  const int64_t chunks = (count + kChunk - 1) / kChunk;
  parallel_in_order(
      chunks, available_threads(),
      [&](int64_t chunk, int) {
        for (int64_t i = chunk * kChunk; i < std::min(count, (chunk + 1) * kChunk); ++i) work(i);
      },
      [&](int64_t chunk) { progress.advance(std::min(kChunk, count - chunk * kChunk)); });
}

ImageInfo common_shape(const std::vector<ImageInfo>& infos, int64_t image_size) {
  ImageInfo common = infos.front();
  for (const ImageInfo& info : infos) {
    common.channels = std::max(common.channels, info.channels);
    const bool same_size = info.width == common.width && info.height == common.height;
    if (!same_size) common.width = common.height = 0;
  }
  if (image_size == 0 && common.width == 0) image_size = kDefaultSize;
  if (image_size > 0) common.width = common.height = image_size;
  return common;
}

void write_planes(const Image& image, const ImageInfo& shape, uint8_t* out) {
  const int64_t plane = shape.height * shape.width;
  if (image.width == shape.width && image.height == shape.height) {
    for (int64_t i = 0; i < plane; ++i) {
      for (int64_t c = 0; c < shape.channels; ++c) {
        out[c * plane + i] = image.pixels[static_cast<size_t>(i * shape.channels + c)];
      }
    }
    return;
  }
  const Resampler resampler(image.height, image.width, shape.height, shape.width);
  for (int64_t c = 0; c < shape.channels; ++c) {
    resampler.run(image.pixels.data() + c, image.channels, out + c * plane);
  }
}

}  // namespace

bool has_image_name(const std::string& name) {
  const std::string lower = to_lower_ascii(name);
  return lower.ends_with(".png") || lower.ends_with(".jpg") || lower.ends_with(".jpeg");
}

at::Tensor decode_images(const EncodedImages& images, int64_t image_size, const std::string& title) {
  SOTTO_INVARIANT(images.count > 0);
  std::vector<ImageInfo> infos(static_cast<size_t>(images.count));
  for_each_in_parallel(images.count, title + ": looking at images",
                       [&](int64_t i) { infos[static_cast<size_t>(i)] = probe(images.bytes(i), images.where(i)); });
  const ImageInfo shape = common_shape(infos, image_size);
  at::Tensor decoded = at::empty({images.count, shape.channels, shape.height, shape.width}, at::kByte);
  auto* const out = decoded.data_ptr<uint8_t>();
  const int64_t min_side = kShrinkMargin * std::max(shape.width, shape.height);
  const int64_t record = shape.channels * shape.height * shape.width;
  for_each_in_parallel(images.count, title + ": decoding images", [&](int64_t i) {
    write_planes(decode(images.bytes(i), shape.channels, min_side, images.where(i)), shape, out + i * record);
  });
  return decoded;
}

}  // namespace sotto::io
