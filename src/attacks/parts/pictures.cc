#include "attacks/parts/pictures.h"

#include "attacks/parts/measures.h"
#include "report/png.h"

#include <ATen/ATen.h>

#include <algorithm>

namespace sotto::attacks {
namespace {

constexpr int64_t kMagnified = 4;
constexpr int64_t kColumns = 10;

at::Tensor magnified(const at::Tensor& bytes) {
  return bytes.repeat_interleave(kMagnified, 2).repeat_interleave(kMagnified, 3);
}

}  // namespace

bool are_pictures(const at::Tensor& x) {
  return x.dim() == 4 && (x.size(1) == 1 || x.size(1) == 3);
}

std::string write_picture(const std::filesystem::path& folder, const std::string& name, const at::Tensor& picture) {
  const std::string file = name + ".png";
  report::write_png(folder / file, report::image_grid(magnified(to_bytes(picture)), 1, 1));
  return file;
}

void write_grid(const std::filesystem::path& file, const at::Tensor& pictures) {
  report::write_png(file, report::image_grid(magnified(to_bytes(pictures)), std::min(pictures.size(0), kColumns), 2));
}

}  // namespace sotto::attacks
