// The pickle inside of PyTorch's archives: the archive around it is always in order, or nothing would get that far.
#include "fuzz.h"
#include "io/archive.h"
#include "models/weights/state_dict.h"
#include "models/weights/weights.h"

#include <ATen/ATen.h>
#include <torch/csrc/jit/api/module.h>

#include <archive.h>
#include <archive_entry.h>

#include <memory>

namespace {

using namespace sotto;

std::string pickle_in(const fs::path& file) {
  std::string found;
  io::visit_archive(file, [&](const std::string& name, std::string& bytes) {
    if (name.ends_with("data.pkl")) found = bytes;
  });
  return found;
}

void add(archive* zip, const std::string& name, const std::string& bytes) {
  const std::unique_ptr<archive_entry, decltype(&archive_entry_free)> entry(archive_entry_new(), archive_entry_free);
  archive_entry_set_pathname(entry.get(), name.c_str());
  archive_entry_set_size(entry.get(), static_cast<la_int64_t>(bytes.size()));
  archive_entry_set_filetype(entry.get(), AE_IFREG);
  archive_entry_set_perm(entry.get(), 0644);
  archive_write_header(zip, entry.get());
  archive_write_data(zip, bytes.data(), bytes.size());
}

void write_zip(const fs::path& file, const std::string& pickle) {
  const std::unique_ptr<archive, decltype(&archive_write_free)> zip(archive_write_new(), archive_write_free);
  archive_write_set_format_zip(zip.get());
  archive_write_set_options(zip.get(), "compression=store");
  archive_write_open_filename(zip.get(), file.c_str());
  add(zip.get(), "w/data.pkl", pickle);
  for (const char* name : {"w/data/0", "w/data/1", "w/data/2"}) add(zip.get(), name, std::string(24, '\1'));
  archive_write_close(zip.get());
}

}  // namespace

std::vector<std::string> fuzz::seeds() {
  models::write_state_dict(
      scratch() / "w.pt",
      {{"fc.weight", at::ones({2, 3})}, {"fc.bias", at::zeros({2})}, {"count", at::tensor({7}, at::kLong)}});
  torch::jit::Module inner("Inner"), outer("Outer");
  inner.register_parameter("weight", at::ones({2, 3}), false);
  outer.register_module("layer", inner);
  outer.save((scratch() / "m.pt").string());
  return {pickle_in(scratch() / "w.pt"), pickle_in(scratch() / "m.pt")};
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const fs::path file = fuzz::scratch() / "input.pt";
  write_zip(file, fuzz::bytes_of(data, size));
  return fuzz::attempt([&] { fuzz::touch(models::read_pytorch_archive(file)); });
}
