#include "data/readers/optdigits.h"

#include "base/error.h"
#include "data/record_ops.h"
#include "io/csv.h"

#include <ATen/ATen.h>

#include <cmath>

namespace sotto::data {
namespace {

constexpr int64_t kSide = 8;
constexpr size_t kPixels = kSide * kSide;
constexpr double kBrightest = 16;

double checked(const std::string& cell, double bound, const std::string& where, size_t row) {
  double value = 0;
  if (!io::parse_number(cell, value) || value < 0 || value > bound) {
    fail_user("{}, row {}: '{}' is not in 0…{}", where, row + 1, cell, bound);
  }
  return value;
}

}  // namespace

Dataset read_optdigits(const FileTree& tree, const std::string& name) {
  const std::string plain = tree.find("digits.csv");
  const std::string file = plain.empty() ? tree.find("digits.csv.gz") : plain;
  if (file.empty()) fail_user("{} holds no digits.csv.gz", tree.root().string());
  const std::string where = tree.where(file);
  const auto rows = io::parse_csv(tree.read_inflated(file), where);
  if (rows[0].size() != kPixels + 1) fail_user("{}: rows of 64 pixels and a label are needed", where);
  std::vector<uint8_t> pixels;
  std::vector<int64_t> labels;
  for (size_t i = 0; i < rows.size(); ++i) {
    for (size_t p = 0; p < kPixels; ++p) {
      pixels.push_back(static_cast<uint8_t>(std::lround(checked(rows[i][p], kBrightest, where, i) * 255 / kBrightest)));
    }
    labels.push_back(static_cast<int64_t>(checked(rows[i].back(), 9, where, i)));
  }
  Dataset dataset;
  dataset.name = name;
  dataset.kind = Kind::kImages;
  dataset.class_names = numbered_names(10);
  dataset.domain_names = {name};
  dataset.train.x = at::tensor(pixels, at::kByte).view({-1, 1, kSide, kSide});
  dataset.train.y = at::tensor(labels);
  dataset.train.domain = at::zeros_like(dataset.train.y);
  validate(dataset);
  return dataset;
}

}  // namespace sotto::data
