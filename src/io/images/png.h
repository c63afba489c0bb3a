// PNG through libpng: every colour type and depth, interlaced or not.
#pragma once

#include "io/images/image.h"

#include <string>
#include <string_view>

namespace sotto::io {

bool is_png(std::string_view bytes);

// Both throw a UserError about `where` for truncated or corrupt input.
ImageInfo probe_png(std::string_view bytes, const std::string& where);

// As `channels` (1 or 3) of 8 bits. Transparency is laid over white.
Image decode_png(std::string_view bytes, int64_t channels, const std::string& where);

}  // namespace sotto::io
