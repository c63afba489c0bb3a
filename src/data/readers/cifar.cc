#include "data/readers/cifar.h"

#include "base/error.h"
#include "base/text.h"
#include "data/record_ops.h"

#include <ATen/ATen.h>

#include <cstring>

namespace sotto::data {
namespace {

constexpr int64_t kPixels = 3 * 32 * 32;

// The label is the last of the `label_bytes` bytes before the pixels.
Records read_batch(const FileTree& tree, const std::string& file, int64_t label_bytes) {
  const std::string bytes = tree.read_inflated(file);
  const int64_t record = label_bytes + kPixels;
  const auto size = static_cast<int64_t>(bytes.size());
  if (size == 0 || size % record != 0) {
    fail_user("{} is truncated or corrupt: {} bytes is not a whole number of {}-byte records", tree.where(file), size,
              record);
  }
  Records records;
  records.x = at::empty({size / record, 3, 32, 32}, at::kByte);
  records.y = at::empty({size / record}, at::kLong);
  auto* const x = records.x.data_ptr<uint8_t>();
  auto* const y = records.y.data_ptr<int64_t>();
  for (int64_t i = 0; i < size / record; ++i) {
    const char* const begin = bytes.data() + i * record;
    y[i] = static_cast<uint8_t>(begin[label_bytes - 1]);
    std::memcpy(x + i * kPixels, begin + label_bytes, kPixels);
  }
  records.domain = at::zeros_like(records.y);
  return records;
}

std::vector<std::string> read_names(const FileTree& tree, const std::string& file, int64_t classes) {
  if (file.empty()) return numbered_names(classes);
  std::vector<std::string> names;
  for (const std::string& line : split(tree.read(file), '\n')) {
    if (const std::string name = trim(line); !name.empty()) names.push_back(name);
  }
  if (static_cast<int64_t>(names.size()) != classes) {
    fail_user("{} names {} classes, not {}", tree.where(file), names.size(), classes);
  }
  return names;
}

Dataset assemble(const std::string& name, Records train, Records test, std::vector<std::string> class_names) {
  Dataset dataset;
  dataset.name = name;
  dataset.kind = Kind::kImages;
  dataset.class_names = std::move(class_names);
  dataset.domain_names = {name};
  dataset.train = std::move(train);
  dataset.test = std::move(test);
  validate(dataset);
  return dataset;
}

}  // namespace

bool is_cifar10(const FileTree& tree) {
  return !tree.find("data_batch_1.bin").empty();
}

bool is_cifar100(const FileTree& tree) {
  return !tree.find("train.bin").empty() && !tree.find("test.bin").empty();
}

Dataset read_cifar10(const FileTree& tree, const std::string& name) {
  std::vector<Records> batches;
  for (int i = 1; i <= 5; ++i) {
    const std::string file = tree.find(fmt::format("data_batch_{}.bin", i));
    if (!file.empty()) batches.push_back(read_batch(tree, file, 1));
  }
  if (batches.empty()) fail_user("{} holds no data_batch_1.bin", tree.root().string());
  const std::string test = tree.find("test_batch.bin");
  return assemble(name, concat_records(batches), test.empty() ? Records() : read_batch(tree, test, 1),
                  read_names(tree, tree.find("batches.meta.txt"), 10));
}

Dataset read_cifar100(const FileTree& tree, const std::string& name) {
  const std::string train = tree.find("train.bin");
  const std::string test = tree.find("test.bin");
  if (train.empty() || test.empty()) fail_user("{} holds no train.bin and test.bin", tree.root().string());
  return assemble(name, read_batch(tree, train, 2), read_batch(tree, test, 2),
                  read_names(tree, tree.find("fine_label_names.txt"), 100));
}

}  // namespace sotto::data
