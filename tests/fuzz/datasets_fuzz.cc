// Datasets of one or two files in the formats that custom data may have. The first line says which.
#include "../data/make_files.h"
#include "data/custom.h"
#include "data/dataset.h"
#include "fuzz.h"
#include "io/safetensors.h"

#include <ATen/ATen.h>

#include <map>

namespace {

using namespace sotto;

const std::map<std::string, std::vector<std::string>>& layouts() {
  static const std::map<std::string, std::vector<std::string>> known{
      {"idx", {"train-images-idx3-ubyte", "train-labels-idx1-ubyte"}},
      {"cifar10", {"data_batch_1.bin", "batches.meta.txt"}},
      {"cifar100", {"train.bin", "test.bin"}},
      {"leaf", {"train/a.json", "test/a.json"}},
      {"labelled", {"train.csv", "train/a.png"}},
      {"folder", {"cat/a.png", "dog/b.png"}},
      {"features", {"a.safetensors"}},
      {"archive", {"a.tar.gz"}},
      {"zip", {"a.zip"}}};
  return known;
}

}  // namespace

std::vector<std::string> fuzz::seeds() {
  using namespace sotto::test;
  const std::string next(kNextFile);
  const std::string images = idx_bytes({2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8}), labels = idx_bytes({2}, {0, 1});
  const std::string features = io::safetensors_bytes({.tensors = {{"x", at::ones({3, 2})},
                                                                  {"y", at::arange(3, at::kLong)},
                                                                  {"test_x", at::ones({1, 2})},
                                                                  {"test_y", at::zeros({1}, at::kLong)}},
                                                      .metadata = {{"class_names", R"(["a", "b", "c"])"}}});
  std::string pixels = "0.5";
  for (int i = 1; i < 784; ++i) pixels += ",1";
  const std::string leaf =
      R"({"users": ["w"], "num_samples": [1], "user_data": {"w": {"x": [[)" + pixels + R"(]], "y": [3]}}})";
  const std::string picture = plain_png(3, 2, {200, 10, 60});
  return {"idx\n" + images + next + labels,
          "idx\n" + gzipped(images) + next + gzipped(labels),
          "cifar10\n" + std::string(3073, '\1') + next + "a\nb\nc\n",
          "cifar100\n" + std::string(3074, '\1') + next + std::string(3074, '\2'),
          "leaf\n" + leaf + next + leaf,
          "labelled\nimage_name,label\na.png,0\n" + next + picture,
          "folder\n" + picture + next + picture,
          "features\n" + features,
          "archive\n" + tar_gz({{"train-images-idx3-ubyte", images}, {"train-labels-idx1-ubyte", labels}}),
          "archive\n" + tar_gz({{"train.csv", "x,label\n0.5,1\n-0.5,0\n"}})};
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string input = fuzz::bytes_of(data, size);
  const size_t line = std::min(input.find('\n'), input.size());
  const auto layout = layouts().find(input.substr(0, line));
  if (layout == layouts().end()) return 0;
  const auto& names = layout->second;
  const std::string folder = "dataset-" + layout->first;
  const auto files = fuzz::parts(std::string_view(input).substr(std::min(line + 1, input.size())), names.size());
  for (size_t i = 0; i < names.size(); ++i) fuzz::as_file(folder + "/" + names[i], files[i]);
  const fs::path path = names.size() == 1 ? fuzz::scratch() / folder / names[0] : fuzz::scratch() / folder;
  return fuzz::attempt([&] { data::read_custom(path, "input", 0); });
}
