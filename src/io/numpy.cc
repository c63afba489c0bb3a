#include "io/numpy.h"

#include "base/error.h"
#include "base/files.h"

#include <ATen/ATen.h>

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <optional>
#include <vector>

namespace sotto::io {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr size_t kMostDimensions = 16;

struct Layout {
  std::string type;
  bool columns_first = false;
  std::vector<int64_t> shape;
};

std::optional<at::ScalarType> type_of(const std::string& name) {
  static const std::vector<std::pair<std::string_view, at::ScalarType>> known = {
      {"|b1", at::kBool}, {"|i1", at::kChar}, {"|u1", at::kByte},  {"<i2", at::kShort}, {"<i4", at::kInt},
      {"<i8", at::kLong}, {"<f2", at::kHalf}, {"<f4", at::kFloat}, {"<f8", at::kDouble}};
  const auto found = std::find_if(known.begin(), known.end(), [&](const auto& entry) { return entry.first == name; });
  return found == known.end() ? std::nullopt : std::optional(found->second);
}

// The text after 'key': in a header, without leading blanks; nothing if the key is not there.
std::optional<std::string_view> value_of(std::string_view header, std::string_view key) {
  const size_t found = header.find(fmt::format("'{}':", key));
  if (found == std::string_view::npos) return std::nullopt;
  std::string_view rest = header.substr(found + key.size() + 3);
  rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
  return rest;
}

std::optional<std::string> quoted(std::string_view text) {
  if (text.empty() || text.front() != '\'') return std::nullopt;
  const size_t end = text.find('\'', 1);
  if (end == std::string_view::npos) return std::nullopt;
  return std::string(text.substr(1, end - 1));
}

// "(3, 4)", "(3,)", "()".
std::optional<std::vector<int64_t>> dimensions(std::string_view text) {
  const size_t end = text.find(')');
  if (text.empty() || text.front() != '(' || end == std::string_view::npos) return std::nullopt;
  std::vector<int64_t> shape;
  const char* at = text.data() + 1;
  const char* last = text.data() + end;
  while (true) {
    while (at != last && (*at == ' ' || *at == ',')) ++at;
    if (at == last) return shape;
    int64_t size = 0;
    const auto [next, error] = std::from_chars(at, last, size);
    if (error != std::errc() || size < 0 || shape.size() == kMostDimensions) return std::nullopt;
    shape.push_back(size);
    at = next;
  }
}

std::optional<Layout> parse_header(std::string_view header) {
  const auto type = value_of(header, "descr"), order = value_of(header, "fortran_order");
  const auto shape = value_of(header, "shape");
  if (!type || !order || !shape) return std::nullopt;
  const auto name = quoted(*type);
  const auto sizes = dimensions(*shape);
  const bool columns_first = order->starts_with("True");
  if (!sizes || (!columns_first && !order->starts_with("False"))) return std::nullopt;
  return Layout{name.value_or(""), columns_first, *sizes};
}

// Their product, if that is at most `most`.
std::optional<int64_t> elements(const std::vector<int64_t>& shape, int64_t most) {
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return 0;
  int64_t count = 1;
  for (const int64_t size : shape) {
    if (size > most / count) return std::nullopt;
    count *= size;
  }
  return count;
}

}  // namespace

at::Tensor parse_npy(std::string_view bytes, const std::string& where) {
  constexpr size_t kVersionAt = 6, kLengthAt = 8;
  if (!bytes.starts_with(kMagic) || bytes.size() < 12) fail_user("{} is no NumPy array (.npy)", where);
  const bool long_header = bytes[kVersionAt] > 1;
  const size_t header_at = kLengthAt + (long_header ? 4 : 2);
  size_t length = 0;
  for (size_t i = header_at; i-- > kLengthAt;) length = length << 8U | static_cast<unsigned char>(bytes[i]);
  if (length > bytes.size() - header_at) fail_user("{} is truncated within its header", where);
  const auto layout = parse_header(bytes.substr(header_at, length));
  if (!layout) fail_user("{} has a header that is none of NumPy's", where);
  const auto type = type_of(layout->type);
  if (!type) {
    fail_user("{} holds {}; numbers that can be read are bool, int8 to int64, uint8, float16 to float64, little-endian",
              where, layout->type.empty() ? "records" : fmt::format("'{}'", layout->type));
  }
  const std::string_view data = bytes.substr(header_at + length);
  const auto item = static_cast<int64_t>(at::elementSize(*type));
  const auto count = elements(layout->shape, static_cast<int64_t>(data.size()) / item);
  if (!count) fail_user("{} is truncated: its {} bytes do not fill the shape that it states", where, data.size());
  std::vector<int64_t> stored = layout->shape;
  if (layout->columns_first) std::reverse(stored.begin(), stored.end());
  at::Tensor array = at::empty(stored, *type);
  if (*count > 0) std::memcpy(array.data_ptr(), data.data(), static_cast<size_t>(*count * item));
  if (!layout->columns_first || stored.size() < 2) return array;
  std::vector<int64_t> order(stored.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int64_t>(order.size() - 1 - i);
  return array.permute(order).contiguous();
}

at::Tensor read_npy(const std::filesystem::path& path) {
  return parse_npy(read_file(path), path.string());
}

}  // namespace sotto::io
