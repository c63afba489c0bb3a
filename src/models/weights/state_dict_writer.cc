#include "base/error.h"
#include "base/files.h"
#include "models/weights/weights.h"

#include <ATen/ATen.h>
#include <caffe2/serialize/inline_container.h>

#include <cstdint>
#include <fstream>
#include <map>

namespace sotto::models {
namespace {

const char* storage_name(const NamedTensor& tensor) {
  static const std::map<at::ScalarType, const char*> names = {
      {at::kFloat, "FloatStorage"}, {at::kDouble, "DoubleStorage"},     {at::kHalf, "HalfStorage"},
      {at::kLong, "LongStorage"},   {at::kBFloat16, "BFloat16Storage"}, {at::kInt, "IntStorage"},
      {at::kShort, "ShortStorage"}, {at::kChar, "CharStorage"},         {at::kByte, "ByteStorage"},
      {at::kBool, "BoolStorage"}};
  const auto found = names.find(tensor.value.scalar_type());
  SOTTO_INVARIANT(found != names.end());
  return found->second;
}

// Just enough of pickle protocol 2 for an OrderedDict of tensors, in the very form of Python's torch.save, so that
// torch.load accepts it with weights_only too.
class StateDictPickle {
 public:
  std::string write(const NamedTensors& tensors) {
    bytes_ = "\x80\x02";
    ordered_dict();
    bytes_ += '(';
    for (size_t i = 0; i < tensors.size(); ++i) {
      text(tensors[i].name);
      tensor(tensors[i], std::to_string(i));
    }
    bytes_ += "u.";
    return std::move(bytes_);
  }

 private:
  void global(const std::string& module, const std::string& name) { bytes_ += "c" + module + "\n" + name + "\n"; }

  void ordered_dict() {
    global("collections", "OrderedDict");
    bytes_ += ")R";
  }

  void little_endian(uint64_t value, int size) {
    for (int i = 0; i < size; ++i) bytes_ += static_cast<char>(value >> (8 * i) & 0xff);
  }

  void text(const std::string& value) {
    bytes_ += 'X';
    little_endian(value.size(), 4);
    bytes_ += value;
  }

  void integer(int64_t value) {
    bytes_ += "\x8a\x08";
    little_endian(static_cast<uint64_t>(value), 8);
  }

  void tuple(at::IntArrayRef values) {
    bytes_ += '(';
    for (const int64_t value : values) integer(value);
    bytes_ += 't';
  }

  // _rebuild_tensor_v2(storage, offset, size, stride, requires_grad, backward_hooks)
  void tensor(const NamedTensor& tensor, const std::string& file) {
    global("torch._utils", "_rebuild_tensor_v2");
    bytes_ += "((";
    text("storage");
    global("torch", storage_name(tensor));
    text(file);
    text("cpu");
    integer(tensor.value.numel());
    bytes_ += "tQ";
    integer(0);
    tuple(tensor.value.sizes());
    tuple(tensor.value.strides());
    bytes_ += '\x89';
    ordered_dict();
    bytes_ += "tR";
  }

  std::string bytes_;
};

}  // namespace

void write_state_dict(const fs::path& path, const NamedTensors& tensors) {
  NamedTensors dense;
  for (const auto& [name, value] : tensors) dense.push_back({name, value.detach().cpu().contiguous()});
  write_file_atomically(path, [&](const fs::path& temporary) {
    std::ofstream file(temporary, std::ios::binary);
    // Errors are looked for once, below: the archive's destructor must not meet one.
    caffe2::serialize::PyTorchStreamWriter archive([&](const void* bytes, size_t size) {
      file.write(static_cast<const char*>(bytes), static_cast<std::streamsize>(size));
      return size;
    });
    const std::string pickle = StateDictPickle().write(dense);
    archive.writeRecord("data.pkl", pickle.data(), pickle.size());
    for (size_t i = 0; i < dense.size(); ++i)
      archive.writeRecord("data/" + std::to_string(i), dense[i].value.data_ptr(), dense[i].value.nbytes());
    archive.writeEndOfFile();
    if (!file.flush()) fail_user("cannot write {}: is the disk full?", path.string());
  });
}

}  // namespace sotto::models
