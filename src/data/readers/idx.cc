#include "data/readers/idx.h"

#include "base/error.h"
#include "data/record_ops.h"

#include <ATen/ATen.h>

#include <cstring>

namespace sotto::data {
namespace {

constexpr size_t kMagicBytes = 4;
constexpr uint8_t kUnsignedByte = 0x08;

std::string find_part(const FileTree& tree, std::initializer_list<const char*> stems) {
  for (const char* stem : stems) {
    for (const std::string& file : tree.files()) {
      if (file.substr(file.rfind('/') + 1).find(stem) != std::string::npos) return file;
    }
  }
  return "";
}

uint32_t big_endian(const char* bytes) {
  const auto* b = reinterpret_cast<const uint8_t*>(bytes);
  return (uint32_t{b[0]} << 24) | (uint32_t{b[1]} << 16) | (uint32_t{b[2]} << 8) | uint32_t{b[3]};
}

Records read_pair(const FileTree& tree, const std::string& images, const std::string& labels) {
  Records records;
  records.x = parse_idx(tree.read_inflated(images), tree.where(images));
  records.y = parse_idx(tree.read_inflated(labels), tree.where(labels)).to(at::kLong);
  if (records.x.dim() != 3)
    fail_user("{} holds no grey images: {} dimensions, not 3", tree.where(images), records.x.dim());
  if (records.y.dim() != 1) fail_user("{} holds no labels: {} dimensions, not 1", tree.where(labels), records.y.dim());
  if (records.x.size(0) != records.y.size(0)) {
    fail_user("{} has {} images but {} has {} labels", tree.where(images), records.x.size(0), tree.where(labels),
              records.y.size(0));
  }
  records.x = records.x.unsqueeze(1);
  records.domain = at::zeros_like(records.y);
  return records;
}

}  // namespace

bool is_idx(const FileTree& tree) {
  return !find_part(tree, {"train-images"}).empty() && !find_part(tree, {"train-labels"}).empty();
}

at::Tensor parse_idx(const std::string& bytes, const std::string& where) {
  const bool known = bytes.size() >= kMagicBytes && bytes[0] == 0 && bytes[1] == 0 && bytes[2] == kUnsignedByte;
  const size_t dimensions = known ? static_cast<uint8_t>(bytes[3]) : 0;
  if (dimensions < 1 || dimensions > 4) fail_user("{} is not an IDX file of bytes", where);
  const size_t header = kMagicBytes + 4 * dimensions;
  if (bytes.size() < header) fail_user("{} is truncated: its header is incomplete", where);
  std::vector<int64_t> shape;
  uint64_t count = 1;
  for (size_t d = 0; d < dimensions; ++d) {
    shape.push_back(big_endian(bytes.data() + kMagicBytes + 4 * d));
    if (__builtin_mul_overflow(count, static_cast<uint64_t>(shape.back()), &count)) count = UINT64_MAX;
  }
  if (count == 0) fail_user("{} is empty", where);
  if (bytes.size() - header != count) {
    fail_user("{} is {}: {} bytes of data where its header announces {}", where,
              bytes.size() - header < count ? "truncated" : "corrupt", bytes.size() - header, count);
  }
  at::Tensor values = at::empty(shape, at::kByte);
  std::memcpy(values.data_ptr(), bytes.data() + header, count);
  return values;
}

Dataset read_idx(const FileTree& tree, const std::string& name, std::vector<std::string> class_names) {
  const std::string train_images = find_part(tree, {"train-images"});
  const std::string train_labels = find_part(tree, {"train-labels"});
  if (train_images.empty() || train_labels.empty()) {
    fail_user("{} holds no pair of files train-images… and train-labels…", tree.root().string());
  }
  const std::string test_images = find_part(tree, {"t10k-images", "test-images"});
  const std::string test_labels = find_part(tree, {"t10k-labels", "test-labels"});
  if (test_images.empty() != test_labels.empty()) {
    fail_user("{} holds test images or test labels but not both", tree.root().string());
  }
  Dataset dataset;
  dataset.name = name;
  dataset.kind = Kind::kImages;
  dataset.train = read_pair(tree, train_images, train_labels);
  if (!test_images.empty()) dataset.test = read_pair(tree, test_images, test_labels);
  if (class_names.empty()) class_names = numbered_names(dataset.train.y.max().item<int64_t>() + 1);
  dataset.class_names = std::move(class_names);
  dataset.domain_names = {name};
  validate(dataset);
  return dataset;
}

}  // namespace sotto::data
