#include "data/catalogue.h"

#include "base/files.h"
#include "data/cache.h"
#include "data/file_tree.h"
#include "data/readers/cifar.h"
#include "data/readers/feature_file.h"
#include "data/readers/heart_disease.h"
#include "data/readers/idx.h"
#include "data/readers/image_folder.h"
#include "data/readers/labelled_images.h"
#include "data/readers/leaf_json.h"
#include "data/readers/optdigits.h"
#include "data/readers/text_csv.h"
#include "data/readers/tiny_imagenet.h"
#include "data/search.h"

#include <fmt/format.h>

#include <algorithm>

namespace sotto::data {
namespace {

constexpr const char* kIdxFiles =
    "train-images-idx3-ubyte, train-labels-idx1-ubyte and the same for t10k, plain or .gz";
constexpr const char* kLabelledFiles = "train.csv, train/*.png, test.csv, test/*.png, or a .tar.gz of them";

using Read = std::function<Dataset(const fs::path&, int64_t)>;
using TreeReader = Dataset (*)(const FileTree&, const std::string&);
using ImageTreeReader = Dataset (*)(const FileTree&, const std::string&, int64_t);

Read idx(const std::string& name, std::vector<std::string> classes) {
  return [=](const fs::path& path, int64_t) { return read_idx(FileTree::open(path), name, classes); };
}

Read tree(const std::string& name, TreeReader reader) {
  return [=](const fs::path& path, int64_t) { return reader(FileTree::open(path), name); };
}

Read images(const std::string& name, ImageTreeReader reader) {
  return [=](const fs::path& path, int64_t image_size) { return reader(FileTree::open(path), name, image_size); };
}

Dataset read_quickdraw(const fs::path& path, int64_t) {
  return read_feature_file(fs::is_directory(path) ? path / "quickdraw.safetensors" : path, "quickdraw");
}

Dataset read_cifar100_files(const fs::path& path, int64_t image_size) {
  const std::string name = "cifar100";
  const FileTree tree = FileTree::open(path);
  if (is_cifar100(tree) || !is_image_folder(tree)) return read_cifar100(tree, name);
  return cached_decoding(name, path, image_size, [&] { return read_image_folder(tree, name, image_size); });
}

std::vector<CatalogueEntry> make_catalogue() {
  const std::vector<std::string> digits{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"};
  const std::vector<std::string> clothing{"T-shirt", "trouser", "pullover", "dress", "coat",
                                          "sandal",  "shirt",   "sneaker",  "bag",   "ankle boot"};
  return {
      {"fashion-mnist", "70,000 grey 28×28 images of clothing, 10 classes", kIdxFiles, true, false,
       idx("fashion-mnist", clothing)},
      {"mnist", "70,000 grey 28×28 handwritten digits", kIdxFiles, true, false, idx("mnist", digits)},
      {"usps", "9,298 grey 28×28 digits from envelopes", kLabelledFiles, false, true,
       images("usps", read_labelled_images)},
      {"svhn", "RGB 28×28 house-number digits", kLabelledFiles, false, true, images("svhn", read_labelled_images)},
      {"mnistm", "RGB 28×28 digits over photographs", kLabelledFiles, false, true,
       images("mnistm", read_labelled_images)},
      {"optdigits", "1,797 grey 8×8 handwritten digits", "digits.csv.gz", true, false,
       tree("optdigits", read_optdigits)},
      {"cifar10", "60,000 RGB 32×32 images, 10 classes", "data_batch_1…5.bin, test_batch.bin (the binary version)",
       true, false, tree("cifar10", read_cifar10)},
      {"cifar100", "60,000 RGB 32×32 images, 100 classes",
       "train.bin, test.bin (the binary version), or train/CLASS/*.png and test/CLASS/*.png", false, false,
       read_cifar100_files},
      {"tiny-imagenet-32", "55,000 RGB 32×32 images, 100 classes of Tiny-ImageNet",
       "wnids.txt, words.txt, train/, val/, or a .tar.gz of them", false, true,
       images("tiny-imagenet-32", read_tiny_imagenet)},
      {"femnist", "handwritten digits and letters, 62 classes, a domain per writer",
       "LEAF's train/*.json and test/*.json", false, true, tree("femnist", read_leaf)},
      {"quickdraw", "34,500 grey 28×28 drawings, 345 classes", "quickdraw.safetensors", true, false, read_quickdraw},
      {"office-caltech10", "2,533 photographs of 10 kinds of objects, 4 domains", "domain/class/*.jpg", false, true,
       images("office-caltech10", read_image_folder)},
      {"pacs", "9,991 pictures, 7 classes: art, cartoon, photo, sketch", "domain/class/*.jpg or .png", false, true,
       images("pacs", read_image_folder)},
      {"heart-disease", "920 patients of 4 hospitals, 13 measurements, 2 classes",
       "processed.HOSPITAL.data of cleveland, hungarian, switzerland, va", false, false,
       tree("heart-disease", read_heart_disease)},
      {"ag-news", "news items of 4 classes as text", "train.csv or dev.csv, test.csv, classes.txt", false, false,
       tree("ag-news", read_ag_news)},
  };
}

}  // namespace

const std::vector<CatalogueEntry>& catalogue() {
  static const std::vector<CatalogueEntry> entries = make_catalogue();
  return entries;
}

const CatalogueEntry* find_entry(const std::string& name) {
  const auto found =
      std::find_if(catalogue().begin(), catalogue().end(), [&](const auto& e) { return e.name == name; });
  return found == catalogue().end() ? nullptr : &*found;
}

std::string how_to_get(const CatalogueEntry& entry) {
  if (entry.installable) return "sotto data install " + entry.name;
  return fmt::format("put {} into {}", entry.files, (installed_data_folder() / entry.name).string());
}

}  // namespace sotto::data
