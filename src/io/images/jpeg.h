// JPEG through libjpeg-turbo: grey, YCbCr, RGB, CMYK and YCCK.
#pragma once

#include "io/images/image.h"

#include <string>
#include <string_view>

namespace sotto::io {

bool is_jpeg(std::string_view bytes);

// Both throw a UserError about `where` for truncated or corrupt input.
ImageInfo probe_jpeg(std::string_view bytes, const std::string& where);

// As `channels` (1 or 3) of 8 bits. If min_side > 0 the decoder may shrink the image by a power of two, which saves
// most of the work, as long as neither side falls below min_side.
Image decode_jpeg(std::string_view bytes, int64_t channels, int64_t min_side, const std::string& where);

}  // namespace sotto::io
