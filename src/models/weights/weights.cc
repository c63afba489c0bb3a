#include "models/weights/weights.h"

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "io/safetensors.h"
#include "models/weights/state_dict.h"
#include "models/weights/tfjs.h"

#include <ATen/ATen.h>

#include <cstring>
#include <fstream>

namespace sotto::models {
namespace {

constexpr size_t kListed = 12;

std::string first_bytes(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) fail_user("cannot read {}", path.string());
  std::string bytes(16, '\0');
  file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  bytes.resize(static_cast<size_t>(file.gcount()));
  return bytes;
}

bool looks_like_safetensors(const std::string& start, const fs::path& path) {
  if (start.size() < 9) return false;
  uint64_t header = 0;
  std::memcpy(&header, start.data(), sizeof header);
  return start[8] == '{' || (path.extension() == ".safetensors" && header < fs::file_size(path));
}

NamedTensors read_any(const fs::path& path) {
  if (fs::is_directory(path)) return read_any(path / "model.json");
  const std::string start = first_bytes(path);
  if (start.starts_with("PK")) return read_pytorch_archive(path);
  if (start.starts_with("{")) return read_tfjs(path);
  if (start.starts_with("\x80"))
    fail_user("{}: PyTorch's old file format; load it in Python and save its state dict again with torch.save",
              path.string());
  if (looks_like_safetensors(start, path)) return io::read_safetensors(path).tensors;
  fail_user(
      "{}: not weights; expected a PyTorch state dict or TorchScript archive, safetensors, or a TensorFlow.js "
      "model.json",
      path.string());
}

std::string listing(const std::vector<std::string>& names) {
  std::vector<std::string> shown(names.begin(), names.begin() + static_cast<int64_t>(std::min(names.size(), kListed)));
  const std::string more = names.size() > kListed ? fmt::format(" and {} more", names.size() - kListed) : "";
  return join(shown, ", ") + more;
}

std::string shape_text(const at::Tensor& tensor) {
  return fmt::format("[{}]", fmt::join(tensor.sizes(), "×"));
}

}  // namespace

NamedTensors read_weights(const fs::path& path) {
  NamedTensors tensors = read_any(path);
  for (auto& tensor : tensors)
    if (tensor.value.scalar_type() == at::kHalf || tensor.value.scalar_type() == at::kBFloat16)
      tensor.value = tensor.value.to(at::kFloat);
  return tensors;
}

void assign_weights(NamedTensors& into, const NamedTensors& from, const std::string& where) {
  std::vector<std::string> missing, extra, different;
  for (const auto& [name, value] : into) {
    const at::Tensor given = find_tensor(from, name);
    if (!given.defined())
      missing.push_back(name);
    else if (given.sizes() != value.sizes())
      different.push_back(fmt::format("{} {} instead of {}", name, shape_text(given), shape_text(value)));
  }
  for (const auto& [name, value] : from)
    if (!find_tensor(into, name).defined()) extra.push_back(name);

  std::vector<std::string> problems;
  if (!missing.empty()) problems.push_back("missing: " + listing(missing));
  if (!extra.empty()) problems.push_back("not in the model: " + listing(extra));
  if (!different.empty()) problems.push_back("of another shape: " + listing(different));
  if (!problems.empty()) fail_user("weights {} do not fit; {}", where, join(problems, "; "));

  const at::NoGradGuard no_grad;
  for (auto& [name, value] : into) value.copy_(find_tensor(from, name));
}

}  // namespace sotto::models
