#include "base/safetensors.h"

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
#include <tuple>
#include <vector>

namespace sotto {
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
constexpr const char* kMetadata = "__metadata__";
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

at::Tensor map_tensor(const std::shared_ptr<Mapping>& mapping, uint64_t data_offset, const Entry& entry) {
  const auto options = at::TensorOptions().dtype(entry.type);
  if (entry.begin == entry.end) return at::empty(entry.shape, options);
  char* const data = mapping->data() + data_offset + entry.begin;
  const at::Tensor mapped = at::from_blob(
      data, entry.shape, [mapping](void*) {}, options);
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

}  // namespace

SafeTensors read_safetensors(const fs::path& path) {
  const auto mapping = std::make_shared<Mapping>(path);
  uint64_t header_bytes = 0;
  if (mapping->size() < kLengthBytes) fail_format(path, "it is too short");
  std::memcpy(&header_bytes, mapping->data(), kLengthBytes);
  if (header_bytes > kMaxHeader || header_bytes > mapping->size() - kLengthBytes) {
    fail_format(path, "it is truncated or of another format");
  }
  const uint64_t data_offset = kLengthBytes + header_bytes;
  const char* const text = mapping->data() + kLengthBytes;
  try {
    const auto header = nlohmann::json::parse(text, text + header_bytes);
    if (!header.is_object()) fail_format(path, "its header is not a JSON object");
    SafeTensors content;
    const auto entries = parse_entries(header, path);
    check_layout(entries, mapping->size() - data_offset, path);
    for (const Entry& entry : entries) content.tensors.push_back({entry.name, map_tensor(mapping, data_offset, entry)});
    if (header.contains(kMetadata)) content.metadata = header[kMetadata].get<std::map<std::string, std::string>>();
    return content;
  } catch (const nlohmann::json::exception&) {
    fail_format(path, "its header cannot be read");
  }
}

void write_safetensors(const fs::path& path, const SafeTensors& content) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!content.metadata.empty()) header[kMetadata] = content.metadata;
  NamedTensors packed;
  uint64_t offset = 0;
  for (const auto& [name, value] : content.tensors) {
    packed.push_back({name, value.detach().contiguous()});
    const uint64_t end = offset + packed.back().value.nbytes();
    SOTTO_INVARIANT(name != kMetadata && !header.contains(name));
    header[name] = {
        {"dtype", name_of(value.scalar_type())}, {"shape", value.sizes().vec()}, {"data_offsets", {offset, end}}};
    offset = end;
  }
  const std::string text = header_text(header);
  const uint64_t length = text.size();
  write_file_atomically(path, [&](const fs::path& temporary) {
    std::ofstream stream(temporary, std::ios::binary);
    stream.write(reinterpret_cast<const char*>(&length), kLengthBytes);
    stream << text;
    for (const auto& tensor : packed) {
      stream.write(static_cast<const char*>(tensor.value.data_ptr()),
                   static_cast<std::streamsize>(tensor.value.nbytes()));
    }
    stream.close();
    if (!stream) fail_user("cannot write {}: {}", path.string(), std::strerror(errno));
  });
}

}  // namespace sotto
