#include "data/search.h"

#include "base/files.h"
#include "base/text.h"
#include "io/archive.h"

#include <cstdlib>

namespace sotto::data {
namespace {

constexpr const char* kSystemFolder = "/usr/share/datasets";

std::optional<fs::path> resolve_folder(const fs::path& folder) {
  std::error_code error;
  std::optional<fs::path> archive;
  int64_t archives = 0;
  bool has_folders = false;
  bool is_empty = true;
  for (auto it = fs::directory_iterator(folder, error); !error && it != fs::directory_iterator(); it.increment(error)) {
    is_empty = false;
    has_folders = has_folders || it->is_directory(error);
    if (!io::has_archive_name(it->path())) continue;
    archive = it->path();
    ++archives;
  }
  // A folder that cannot be listed is still the dataset's: reading it says why.
  if (is_empty && !error) return std::nullopt;
  return archives == 1 && !has_folders ? archive : folder;
}

std::optional<fs::path> find_below(const fs::path& root, const std::string& name) {
  std::error_code error;
  for (const fs::path& stem : {root / name, root / "digits" / name}) {
    if (fs::is_directory(stem, error)) {
      if (auto found = resolve_folder(stem)) return found;
    }
    for (const char* ending : {".tar.gz", ".tgz", ".tar", ".tar.xz", ".tar.bz2", ".tar.zst", ".zip", ".safetensors"}) {
      const fs::path file = stem.string() + ending;
      if (fs::is_regular_file(file, error)) return file;
    }
  }
  return std::nullopt;
}

}  // namespace

std::vector<fs::path> search_roots() {
  std::vector<fs::path> roots;
  if (const char* paths = std::getenv("SOTTO_DATA"); paths != nullptr) {
    for (const std::string& path : split(paths, ':')) {
      if (!path.empty()) roots.emplace_back(path);
    }
  }
  roots.emplace_back(kSystemFolder);
  roots.push_back(installed_data_folder());
  return roots;
}

std::optional<fs::path> find_dataset(const std::string& name) {
  for (const fs::path& root : search_roots()) {
    if (auto found = find_below(root, name)) return found;
  }
  return std::nullopt;
}

fs::path installed_data_folder() {
  return data_home() / "data";
}

fs::path installed_weights_folder() {
  return data_home() / "weights";
}

}  // namespace sotto::data
