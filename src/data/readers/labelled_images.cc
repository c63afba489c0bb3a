#include "data/readers/labelled_images.h"

#include "base/error.h"
#include "data/readers/image_listing.h"
#include "data/record_ops.h"
#include "io/csv.h"
#include "io/images/decode.h"

#include <algorithm>
#include <cmath>

namespace sotto::data {
namespace {

constexpr double kMaxClasses = 1e6;

std::vector<ListedImage> read_listing(const FileTree& tree, const std::string& split) {
  const std::string table = split + ".csv";
  const auto rows = io::parse_csv(tree.read(table), tree.where(table));
  if (rows[0].size() != 2) fail_user("{}: two columns are needed, image_name and label", tree.where(table));
  std::vector<ListedImage> listed;
  for (size_t i = 0; i < rows.size(); ++i) {
    double label = 0;
    const bool is_label =
        io::parse_number(rows[i][1], label) && label >= 0 && label < kMaxClasses && label == std::floor(label);
    if (i == 0 && !is_label) continue;
    if (!is_label) fail_user("{}, row {}: '{}' is no label (0, 1, …)", tree.where(table), i + 1, rows[i][1]);
    const std::string file = split + "/" + rows[i][0];
    if (!tree.contains(file))
      fail_user("{}, row {}: the image {} is missing", tree.where(table), i + 1, tree.where(file));
    listed.push_back({file, static_cast<int64_t>(label)});
  }
  return listed;
}

}  // namespace

bool is_labelled_images(const FileTree& tree) {
  if (!tree.contains("train.csv")) return false;
  for (const std::string& file : tree.files()) {
    if (file.starts_with("train/") && io::has_image_name(file)) return true;
  }
  return false;
}

Dataset read_labelled_images(const FileTree& tree, const std::string& name, int64_t image_size) {
  ImageListing listing;
  listing.train = read_listing(tree, "train");
  if (tree.contains("test.csv")) listing.test = read_listing(tree, "test");
  int64_t classes = 0;
  for (const ListedImage& image : listing.train) classes = std::max(classes, image.label + 1);
  listing.class_names = numbered_names(classes);
  listing.domain_names = {name};
  return decode_listing(tree, listing, name, image_size);
}

}  // namespace sotto::data
