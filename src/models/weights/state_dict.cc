#include "models/weights/state_dict.h"

#include "base/error.h"
#include "base/files.h"
#include "io/archive.h"
#include "models/weights/pickle.h"

#include <ATen/ATen.h>

#include <map>
#include <optional>

namespace sotto::models {
namespace {

using Kind = Pickled::Kind;

// An archive's files without the folder they share.
using Files = std::map<std::string, std::string>;

Files read_files(const fs::path& path) {
  Files files;
  io::visit_archive(path, [&](const std::string& name, std::string& bytes) {
    const size_t slash = name.find('/');
    files[slash == name.npos ? name : name.substr(slash + 1)] = std::move(bytes);
  });
  return files;
}

std::optional<at::ScalarType> scalar_type(const std::string& storage) {
  static const std::map<std::string, at::ScalarType> types = {
      {"torch.FloatStorage", at::kFloat}, {"torch.DoubleStorage", at::kDouble},     {"torch.HalfStorage", at::kHalf},
      {"torch.LongStorage", at::kLong},   {"torch.BFloat16Storage", at::kBFloat16}, {"torch.IntStorage", at::kInt},
      {"torch.ShortStorage", at::kShort}, {"torch.CharStorage", at::kChar},         {"torch.ByteStorage", at::kByte},
      {"torch.BoolStorage", at::kBool}};
  const auto found = types.find(storage);
  if (found == types.end()) return std::nullopt;
  return found->second;
}

class TensorCollector {
 public:
  TensorCollector(Files files, std::string where) : files_(std::move(files)), where_(std::move(where)) {}

  NamedTensors collect(const Pickled& saved) {
    // libtorch wraps a dictionary it saves in a note of its type.
    const bool wrapped = saved.text == "torch.jit._pickle.restore_type_tag" && !saved.items.empty();
    const Pickled& root = wrapped ? *saved.items[0] : saved;
    if (root.kind == Kind::kMapping) {
      add_mapping(state_dict(root), "", 0);
    } else if (root.kind == Kind::kCall && root.text.starts_with("__torch__.")) {
      add_script_object(root, "", 0);
    } else {
      fail_user("{}: expected a state dict, found {}: save model.state_dict() instead", where_,
                root.text.empty() ? "something else" : root.text);
    }
    if (found_.empty()) fail_user("{}: no tensors in it", where_);
    return std::move(found_);
  }

 private:
  [[noreturn]] void fail(const std::string& name) const {
    fail_user("{}: tensor '{}' is truncated or malformed", where_, name);
  }

  static const Pickled& state_dict(const Pickled& root) {
    for (const char* key : {"state_dict", "model_state_dict", "model"})
      if (const Pickled* inner = root.find(key); inner != nullptr && inner->kind == Kind::kMapping) return *inner;
    return root;
  }

  void add_mapping(const Pickled& mapping, const std::string& prefix, int depth) {
    for (const auto& [key, value] : mapping.entries)
      if (key->kind == Kind::kText) add_value(*value, prefix + key->text, depth);
  }

  void add_script_object(const Pickled& object, const std::string& prefix, int depth) {
    if (object.state != nullptr && object.state->kind == Kind::kMapping) add_mapping(*object.state, prefix, depth);
  }

  // An object that contains itself would go on for ever, and one that contains others twice nearly so.
  void require_end(const std::string& name, int depth) {
    constexpr int kDeepest = 200;
    constexpr int64_t kMostVisits = 200'000;
    if (depth > kDeepest || ++visits_ > kMostVisits) {
      fail_user("{}: its objects contain each other without end, at '{:.80}'", where_, name);
    }
  }

  void add_value(const Pickled& value, const std::string& name, int depth) {
    require_end(name, depth);
    if (value.kind != Kind::kCall) return;
    if (value.text.starts_with("__torch__."))
      add_script_object(value, name + ".", depth + 1);
    else if (value.text == "torch._utils._rebuild_parameter" && !value.items.empty())
      add_value(*value.items[0], name, depth + 1);
    else if (value.text == "torch._utils._rebuild_tensor_v2")
      found_.push_back({name, rebuild(value, name)});
    else if (value.text.starts_with("torch._utils._rebuild"))
      fail_user("{}: tensor '{}' is of a kind that is not supported ({})", where_, name, value.text);
  }

  std::vector<int64_t> integers(const Pickled& sequence, const std::string& name) const {
    std::vector<int64_t> values;
    for (const auto& item : sequence.items) {
      if (item->kind != Kind::kNumber || item->integer < 0) fail(name);
      values.push_back(item->integer);
    }
    return values;
  }

  // A storage reference is ("storage", type, file, device, elements).
  at::Tensor storage(const Pickled& reference, const std::string& name) const {
    if (reference.kind != Kind::kPersistent || reference.items[0]->items.size() < 3) fail(name);
    const auto& parts = reference.items[0]->items;
    const auto type = scalar_type(parts[1]->text);
    if (!type) fail_user("{}: tensor '{}' has unsupported type {}", where_, name, parts[1]->text);
    const auto file = files_.find("data/" + parts[2]->text);
    if (file == files_.end()) fail(name);
    const auto count = static_cast<int64_t>(file->second.size() / at::elementSize(*type));
    return at::from_blob(const_cast<char*>(file->second.data()), {count}, *type);
  }

  // Tensors may show the same bytes of the archive several times; those that do so without measure are a trap.
  void count_shown(const std::vector<int64_t>& sizes, int64_t element_bytes, const std::string& name) {
    constexpr int64_t kTimesTheArchive = 16;
    constexpr int64_t kAlways = 1 << 26;
    int64_t bytes = element_bytes;
    for (const int64_t size : sizes) {
      if (size > 1 && __builtin_mul_overflow(bytes, size, &bytes)) fail(name);
    }
    int64_t stored = 0;
    for (const auto& [file, content] : files_) stored += static_cast<int64_t>(content.size());
    if (bytes > kTimesTheArchive * stored + kAlways - shown_bytes_) fail(name);
    shown_bytes_ += bytes;
  }

  at::Tensor rebuild(const Pickled& call, const std::string& name) {
    if (call.items.size() < 4 || call.items[1]->kind != Kind::kNumber) fail(name);
    const at::Tensor source = storage(*call.items[0], name);
    const int64_t offset = call.items[1]->integer;
    const auto sizes = integers(*call.items[2], name);
    const auto strides = integers(*call.items[3], name);
    if (sizes.size() != strides.size() || offset < 0) fail(name);
    count_shown(sizes, static_cast<int64_t>(source.element_size()), name);
    for (const int64_t size : sizes)
      if (size == 0) return at::empty(sizes, source.options());
    int64_t room = source.numel() - 1 - offset;  // elements behind the first one
    for (size_t i = 0; i < sizes.size(); ++i) {
      if (sizes[i] > 1 && strides[i] > room / (sizes[i] - 1)) fail(name);
      room -= (sizes[i] - 1) * strides[i];
    }
    if (room < 0) fail(name);
    return source.as_strided(sizes, strides, offset).clone(at::MemoryFormat::Contiguous);
  }

  Files files_;
  std::string where_;
  NamedTensors found_;
  int64_t visits_ = 0;
  int64_t shown_bytes_ = 0;
};

}  // namespace

NamedTensors read_pytorch_archive(const fs::path& path) {
  Files files = read_files(path);
  const auto pickle = files.find("data.pkl");
  if (pickle == files.end()) fail_user("{}: a zip file, but not one that PyTorch wrote (no data.pkl)", path.string());
  const PickledPtr root = read_pickle(pickle->second, path.string());
  return TensorCollector(std::move(files), path.string()).collect(*root);
}

}  // namespace sotto::models
