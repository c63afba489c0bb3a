// Pictures made of pixels.
#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>

namespace sotto::report {

// Writes uint8 [H, W, C], C = 1 (grey), 3 (RGB) or 4 (RGBA), atomically. A full disk or an unwritable folder is a
// UserError.
void write_png(const std::filesystem::path& path, const at::Tensor& image);

// The images (uint8 [N, C, H, W]) in rows of `columns`, `padding` white pixels between and around them, as [H', W', C].
// A last row that is not full ends in white. N, columns ≥ 1.
at::Tensor image_grid(const at::Tensor& images, int64_t columns, int64_t padding);

}  // namespace sotto::report
