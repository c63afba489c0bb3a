// Many encoded images (PNG, JPEG) into one tensor, on all cores.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <string>
#include <vector>

namespace sotto::io {

// True for names that end in .png, .jpg or .jpeg in any case.
bool has_image_name(const std::string& name);

// Encoded images by number. `bytes` is called from several threads, once or twice per image.
struct EncodedImages {
  int64_t count = 0;
  std::function<std::string(int64_t)> bytes;
  std::function<std::string(int64_t)> where;  // for messages
};

// What images of differing sizes are brought to where nobody asked for a size.
inline constexpr int64_t kDefaultSize = 32;

// uint8 [count, C, H, W]: three channels if any image has colours, otherwise one. image_size > 0 brings all to that
// many pixels a side (proportions are not kept); 0 keeps their common size, or uses kDefaultSize if they differ.
// `title` heads the progress bar. A corrupt image is a UserError that names it.
at::Tensor decode_images(const EncodedImages& images, int64_t image_size, const std::string& title);

}  // namespace sotto::io
