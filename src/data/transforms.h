// Fixed image transforms: one dataset seen in several ways makes several domains of one task.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

namespace sotto::data {

// plain, inverted, rotated, mirrored, edges, blurred, pixelated, low-contrast, noisy.
std::vector<std::string> transform_names();

// The images (uint8 [N, C, H, W]) as the named transform shows them; same shape, always the same result. "plain"
// returns its argument. An unknown name, something that is not images, or a rotation of images that are not square is a
// UserError.
at::Tensor apply_transform(const std::string& name, const at::Tensor& images);

}  // namespace sotto::data
