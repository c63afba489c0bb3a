#include "io/safetensors.h"

#include "base/error.h"
#include "base/files.h"

#include <ATen/ATen.h>

#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <limits>
#include <memory>
#include <span>
#include <tuple>
#include <vector>

namespace sotto::io {
namespace {

struct Dtype {
  const char* name;
  at::ScalarType type;
};

constexpr std::array<Dtype, 7> kDtypes{{{"U8", at::kByte},
                                        {"I32", at::kInt},
                                        {"I64", at::kLong},
                                        {"F16", at::kHalf},
                                        {"F32", at::kFloat},
                                        {"F64", at::kDouble},
                                        {"BOOL", at::kBool}}};
constexpr uint64_t kLengthBytes = 8;
constexpr uint64_t kMaxHeader = 100'000'000;
constexpr uint64_t kAlignment = 64;

// A private mapping of a whole file.
class Mapping {
 public:
  explicit Mapping(const fs::path& path) {
    const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) fail_user("cannot read {}: {}", path.string(), std::strerror(errno));
    struct stat status {};
    const bool regular = ::fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode);
    if (regular && status.st_size > 0) {
      size_ = static_cast<uint64_t>(status.st_size);
      data_ = ::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE, descriptor, 0);
    }
    ::close(descriptor);
    if (!regular) fail_user("cannot read {}: it is not a regular file", path.string());
    if (data_ == MAP_FAILED) fail_user("cannot map {} into memory: {}", path.string(), std::strerror(errno));
  }
  ~Mapping() {
    if (data_ != nullptr && data_ != MAP_FAILED) ::munmap(data_, size_);
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  char* data() const { return static_cast<char*>(data_); }
  uint64_t size() const { return size_; }

 private:
  void* data_ = nullptr;
  uint64_t size_ = 0;
};

struct Entry {
  std::string name;
  at::ScalarType type = at::kByte;
  std::vector<int64_t> shape;
  uint64_t begin = 0;
  uint64_t end = 0;
};

[[noreturn]] void fail_format(const fs::path& path, const std::string& what) {
  fail_user("{} is not a valid safetensors file: {}", path.string(), what);
}

at::ScalarType dtype_named(const std::string& name, const fs::path& path) {
  for (const auto& dtype : kDtypes) {
    if (name == dtype.name) return dtype.type;
  }
  fail_user("{}: tensors of type {} are not supported (known: U8, I32, I64, F16, F32, F64, BOOL)", path.string(), name);
}

const char* name_of(at::ScalarType type) {
  const auto found = std::find_if(kDtypes.begin(), kDtypes.end(), [&](const Dtype& d) { return d.type == type; });
  SOTTO_INVARIANT(found != kDtypes.end());
  return found->name;
}

// Bytes of a tensor of this shape, or 2^64-1 if that overflows or a dimension is negative.
uint64_t byte_count(const Entry& entry) {
  uint64_t bytes = c10::elementSize(entry.type);
  for (const int64_t dimension : entry.shape) {
    if (dimension < 0 || __builtin_mul_overflow(bytes, static_cast<uint64_t>(dimension), &bytes)) {
      return std::numeric_limits<uint64_t>::max();
    }
  }
  return bytes;
}

std::vector<Entry> parse_entries(const nlohmann::json& header, const fs::path& path) {
  std::vector<Entry> entries;
  for (const auto& [name, value] : header.items()) {
    if (name == kMetadata) continue;
    const auto offsets = value.at("data_offsets").get<std::array<uint64_t, 2>>();
    entries.push_back({name, dtype_named(value.at("dtype").get<std::string>(), path),
                       value.at("shape").get<std::vector<int64_t>>(), offsets[0], offsets[1]});
  }
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return std::tie(a.begin, a.end) < std::tie(b.begin, b.end); });
  return entries;
}

void check_layout(const std::vector<Entry>& entries, uint64_t data_bytes, const fs::path& path) {
  uint64_t previous_end = 0;
  for (const Entry& entry : entries) {
    if (entry.end > data_bytes)
      fail_format(path, fmt::format("it is truncated, tensor '{}' lies beyond its end", entry.name));
    if (entry.begin < previous_end) fail_format(path, fmt::format("tensor '{}' overlaps another", entry.name));
    if (entry.begin > entry.end || entry.end - entry.begin != byte_count(entry)) {
      fail_format(path, fmt::format("the size of tensor '{}' does not fit its shape", entry.name));
    }
    previous_end = entry.end;
  }
}

// A tensor that shares its bytes with whoever `owner` keeps alive, unless they are not aligned.
at::Tensor shared_tensor(char* data, const Entry& entry, const std::shared_ptr<void>& owner) {
  const auto options = at::TensorOptions().dtype(entry.type);
  if (entry.begin == entry.end) return at::empty(entry.shape, options);
  const at::Tensor mapped = at::from_blob(
      data, entry.shape, [owner](void*) {}, options);
  const bool aligned = reinterpret_cast<uintptr_t>(data) % c10::elementSize(entry.type) == 0;
  if (aligned) return mapped;
  at::Tensor copy = at::empty(entry.shape, options);
  std::memcpy(copy.data_ptr(), data, entry.end - entry.begin);
  return copy;
}

// The header padded with spaces, so that the data that follows is aligned.
std::string header_text(const nlohmann::ordered_json& header) {
  std::string text = header.dump();
  text.append((kAlignment - (kLengthBytes + text.size()) % kAlignment) % kAlignment, ' ');
  return text;
}

SafeTensors parse(std::span<char> bytes, const std::shared_ptr<void>& owner, const fs::path& path) {
  uint64_t header_bytes = 0;
  if (bytes.size() < kLengthBytes) fail_format(path, "it is too short");
  std::memcpy(&header_bytes, bytes.data(), kLengthBytes);
  if (header_bytes > kMaxHeader || header_bytes > bytes.size() - kLengthBytes) {
    fail_format(path, "it is truncated or of another format");
  }
  const std::span<char> data = bytes.subspan(kLengthBytes + header_bytes);
  const char* const text = bytes.data() + kLengthBytes;
  try {
    const auto header = nlohmann::json::parse(text, text + header_bytes);
    if (!header.is_object()) fail_format(path, "its header is not a JSON object");
    SafeTensors content;
    const auto entries = parse_entries(header, path);
    check_layout(entries, data.size(), path);
    for (const Entry& entry : entries) {
      content.tensors.push_back({entry.name, shared_tensor(data.data() + entry.begin, entry, owner)});
    }
    if (header.contains(kMetadata)) content.metadata = header[kMetadata].get<std::map<std::string, std::string>>();
    return content;
  } catch (const nlohmann::json::exception&) {
    fail_format(path, "its header cannot be read");
  }
}

// A file's content as it is written: header and tensors in a row.
struct Layout {
  explicit Layout(const SafeTensors& content) {
    nlohmann::ordered_json entries = nlohmann::ordered_json::object();
    if (!content.metadata.empty()) entries[kMetadata] = content.metadata;
    for (const auto& [name, value] : content.tensors) {
      packed.push_back({name, value.detach().contiguous()});
      const uint64_t end = data_bytes + packed.back().value.nbytes();
      SOTTO_INVARIANT(name != kMetadata && !entries.contains(name));
      entries[name] = {
          {"dtype", name_of(value.scalar_type())}, {"shape", value.sizes().vec()}, {"data_offsets", {data_bytes, end}}};
      data_bytes = end;
    }
    header = header_text(entries);
    length = header.size();
  }

  NamedTensors packed;
  std::string header;
  uint64_t length = 0;
  uint64_t data_bytes = 0;
};

}  // namespace

SafeTensors read_safetensors(const fs::path& path) {
  const auto mapping = std::make_shared<Mapping>(path);
  return parse({mapping->data(), mapping->size()}, mapping, path);
}

SafeTensors parse_safetensors(std::string bytes, const std::string& where) {
  const auto owner = std::make_shared<std::string>(std::move(bytes));
  return parse({owner->data(), owner->size()}, owner, where);
}

std::string safetensors_bytes(const SafeTensors& content) {
  const Layout layout(content);
  std::string bytes(reinterpret_cast<const char*>(&layout.length), kLengthBytes);
  bytes.reserve(kLengthBytes + layout.length + layout.data_bytes);
  bytes += layout.header;
  for (const auto& tensor : layout.packed) {
    bytes.append(static_cast<const char*>(tensor.value.data_ptr()), tensor.value.nbytes());
  }
  return bytes;
}

void write_safetensors(const fs::path& path, const SafeTensors& content) {
  const Layout layout(content);
  write_file_atomically(path, [&](const fs::path& temporary) {
    std::ofstream stream(temporary, std::ios::binary);
    stream.write(reinterpret_cast<const char*>(&layout.length), kLengthBytes);
    stream << layout.header;
    for (const auto& tensor : layout.packed) {
      stream.write(static_cast<const char*>(tensor.value.data_ptr()),
                   static_cast<std::streamsize>(tensor.value.nbytes()));
    }
    stream.close();
    if (!stream) fail_user("cannot write {}: {}", path.string(), std::strerror(errno));
  });
}

}  // namespace sotto::io
