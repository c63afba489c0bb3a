#include "privacy/wire.h"

#include "base/error.h"
#include "io/safetensors.h"
#include "privacy/access.h"
#include "privacy/upload_file.h"

#include <ATen/ATen.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

namespace sotto::privacy {
namespace {

constexpr const char* kContent = "content";
constexpr const char* kReleased = "release";
constexpr const char* kHandedOver = "trusted";

template <typename... Args>
[[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) {
  throw UploadRefused(fmt::format(format, std::forward<Args>(args)...));
}

io::SafeTensors parse(std::string bytes) {
  try {
    return io::parse_safetensors(std::move(bytes), "the upload");
  } catch (const UserError& error) {
    throw UploadRefused(error.what());
  }
}

// The file's name is nobody else's affair.
io::SafeTensors parse_file(const std::filesystem::path& file) {
  try {
    return io::read_safetensors(file);
  } catch (const UserError& error) {
    std::string reason = error.what();
    if (const size_t at = reason.find(file.string()); at != std::string::npos) {
      reason.replace(at, file.string().size(), "the upload");
    }
    throw UploadRefused(reason);
  }
}

// The lengths that the sender chose, as far as they are known.
using Chosen = std::map<int64_t, int64_t>;

bool fits(at::IntArrayRef sizes, const std::vector<int64_t>& expected, Chosen& chosen) {
  if (sizes.size() != expected.size()) return false;
  for (size_t i = 0; i < expected.size(); ++i) {
    const bool is_free = expected[i] < 0;
    if (sizes[i] != (is_free ? chosen.try_emplace(expected[i], sizes[i]).first->second : expected[i])) return false;
  }
  return true;
}

void check(const at::Tensor& value, const TensorShape& shape, Chosen& chosen) {
  if (value.scalar_type() != shape.dtype) {
    refuse("tensor '{}' holds {}, not {}", shape.name, c10::toString(value.scalar_type()), c10::toString(shape.dtype));
  }
  if (!fits(value.sizes(), shape.sizes, chosen)) {
    refuse("tensor '{}' has the shape [{}], not [{}]", shape.name, fmt::join(value.sizes(), ", "),
           fmt::join(shape.sizes, ", "));
  }
  if (value.numel() == 0 || value.scalar_type() == at::kBool) return;
  const auto [low, high] = at::aminmax(value);
  const double least = low.item<double>(), most = high.item<double>();
  // NaN is neither.
  if (!(least >= shape.least && most <= shape.most)) {
    refuse("tensor '{}' holds values that are not finite, or not between {} and {}", shape.name, shape.least,
           shape.most);
  }
}

// The tensors in the order of the shape.
NamedTensors checked(const NamedTensors& values, const std::vector<TensorShape>& shapes) {
  NamedTensors ordered;
  Chosen chosen;
  for (const TensorShape& shape : shapes) {
    const at::Tensor value = find_tensor(values, shape.name);
    if (!value.defined()) {
      if (shape.required) refuse("tensor '{}' is missing", shape.name);
      continue;
    }
    check(value, shape, chosen);
    ordered.push_back({shape.name, value});
  }
  for (const NamedTensor& value : values) {
    if (!find_tensor(ordered, value.name).defined()) refuse("nobody asked for a tensor '{}'", value.name);
  }
  if (ordered.size() != values.size()) refuse("a tensor is there twice");
  return ordered;
}

// Values within their bounds stay as they are, to the last bit.
void clip_again(NamedTensors& values, const TrustedBounds& bounds) {
  size_t first = 0;
  for (const ClipRule& rule : bounds.rules) {
    double square = 0;
    const size_t end = first + static_cast<size_t>(rule.tensors);
    for (size_t i = first; i < end; ++i) square += std::pow(values[i].value.to(at::kDouble).norm().item<double>(), 2);
    if (const double norm = std::sqrt(square); norm > rule.bound) {
      for (size_t i = first; i < end; ++i) values[i].value = values[i].value * (rule.bound * (1 - 1e-6) / norm);
    }
    first = end;
  }
}

Upload upload_of(const io::SafeTensors& content, const UploadShape& shape) {
  const auto kind = content.metadata.find(kContent);
  const char* expected = shape.trusted ? kHandedOver : kReleased;
  if (kind == content.metadata.end() || kind->second != expected) refuse("it does not say that it is a {}", expected);
  NamedTensors values = checked(content.tensors, shape.tensors);
  if (!shape.trusted) return Access::release(std::move(values), Access::foreign_receipt());
  clip_again(values, *shape.trusted);
  return Access::trusted(Access::bounded(std::move(values), shape.trusted->groups, Norm::kL2),
                         Access::foreign_receipt());
}

}  // namespace

std::vector<TensorShape> shapes_of(const NamedTensors& values, bool required) {
  std::vector<TensorShape> shapes;
  for (const auto& [name, value] : values) {
    shapes.push_back({.name = name, .sizes = value.sizes().vec(), .dtype = value.scalar_type(), .required = required});
  }
  return shapes;
}

std::optional<std::string> misfit(const NamedTensors& values, const std::vector<TensorShape>& shapes) {
  try {
    checked(values, shapes);
    return std::nullopt;
  } catch (const UploadRefused& refusal) {
    return refusal.what();
  }
}

std::string encode(const Upload& upload) {
  return io::safetensors_bytes(
      {.tensors = upload.values(), .metadata = {{kContent, upload.trusted() != nullptr ? kHandedOver : kReleased}}});
}

Upload decode(std::string bytes, const UploadShape& shape) {
  return upload_of(parse(std::move(bytes)), shape);
}

Upload decode_file(const std::filesystem::path& file, const UploadShape& shape) {
  return upload_of(parse_file(file), shape);
}

}  // namespace sotto::privacy
