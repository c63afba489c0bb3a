#include "data/custom.h"

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "data/cache.h"
#include "data/file_tree.h"
#include "data/readers/cifar.h"
#include "data/readers/feature_file.h"
#include "data/readers/idx.h"
#include "data/readers/image_folder.h"
#include "data/readers/labelled_images.h"
#include "data/readers/leaf_json.h"
#include "data/readers/numpy_arrays.h"
#include "data/readers/table.h"
#include "data/readers/text_csv.h"
#include "data/readers/tiny_imagenet.h"
#include "io/archive.h"
#include "io/csv.h"

namespace sotto::data {
namespace {

// With a declared schema it is a table, whatever its records look like.
Dataset read_csv_file(const fs::path& path, const fs::path& training_file, const std::string& name,
                      const SchemaChoice& schema) {
  if (schema.declared || (!schema.inferred && schema_beside(training_file))) return read_table(path, name, schema);
  const auto rows = io::parse_csv(read_file(training_file), training_file.string());
  return is_text_table(rows) ? read_text_csv(path, name) : read_table(path, name, schema);
}

Dataset read_tree(const fs::path& path, const std::string& name, int64_t image_size, const SchemaChoice& schema) {
  const FileTree tree = FileTree::open(path);
  if (is_numpy_arrays(tree)) return read_numpy_arrays(tree, name);
  if (is_idx(tree)) return read_idx(tree, name);
  if (is_cifar10(tree)) return read_cifar10(tree, name);
  if (is_cifar100(tree)) return read_cifar100(tree, name);
  const auto through_cache = [&](const std::function<Dataset()>& decode) {
    return cached_decoding(name, path, image_size, decode);
  };
  if (is_labelled_images(tree)) return through_cache([&] { return read_labelled_images(tree, name, image_size); });
  if (is_tiny_imagenet(tree)) return through_cache([&] { return read_tiny_imagenet(tree, name, image_size); });
  if (is_image_folder(tree)) return through_cache([&] { return read_image_folder(tree, name, image_size); });
  if (fs::is_directory(path) && tree.contains("train.csv"))
    return read_csv_file(path, path / "train.csv", name, schema);
  if (is_leaf(tree)) return through_cache([&] { return read_leaf(tree, name); });
  fail_user(
      "{} is in no known format; known are folders or archives with IDX files, CIFAR binary files, domain/class/*.png "
      "or .jpg, "
      "train.csv, LEAF train/*.json, x.npy with y.npy, and single .csv, .npz or .safetensors files",
      path.string());
}

}  // namespace

bool may_be_table(const fs::path& path) {
  if (to_lower_ascii(path.filename().string()).ends_with(".csv")) return true;
  std::error_code error;
  return fs::is_directory(path, error) && fs::exists(path / "train.csv", error);
}

Dataset read_custom(const fs::path& path, const std::string& name, int64_t image_size, const SchemaChoice& schema) {
  const std::string file = to_lower_ascii(path.filename().string());
  std::error_code error;
  if (!fs::exists(path, error)) {
    fail_user("data.path: cannot read {}: {}", path.string(),
              error ? error.message() : "there is no such file or folder");
  }
  if (schema.declared && !may_be_table(path)) {
    fail_user("data.schema: {} is no table (a .csv file, or a folder with train.csv); leave the schema out",
              path.string());
  }
  if (file.ends_with(".safetensors")) return read_feature_file(path, name);
  if (file.ends_with(".npz")) return read_numpy_arrays(FileTree::open(path), name);
  if (file.ends_with(".csv")) return read_csv_file(path, path, name, schema);
  if (fs::is_directory(path, error) || io::has_archive_name(path)) return read_tree(path, name, image_size, schema);
  fail_user(
      "{} is in no known format; a single file must end in .csv, .npz or .safetensors, or be a tar or zip "
      "archive",
      path.string());
}

}  // namespace sotto::data
