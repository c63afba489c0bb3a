#include "data/file_tree.h"

#include "base/error.h"
#include "base/files.h"
#include "io/archive.h"
#include "io/gzip.h"

#include <algorithm>

namespace sotto::data {
namespace {

std::vector<std::string> list_folder(const fs::path& root) {
  std::vector<std::string> files;
  try {
    const auto options = fs::directory_options::follow_directory_symlink;
    for (auto it = fs::recursive_directory_iterator(root, options); it != fs::recursive_directory_iterator(); ++it) {
      const bool hidden = it->path().filename().string().starts_with('.');
      if (hidden && it->is_directory()) it.disable_recursion_pending();
      if (!hidden && it->is_regular_file()) files.push_back(it->path().lexically_relative(root).generic_string());
    }
  } catch (const fs::filesystem_error& error) {
    fail_user("cannot list {}: {}", error.path1().empty() ? root.string() : error.path1().string(),
              error.code().message());
  }
  std::sort(files.begin(), files.end());
  return files;
}

// "usps/" if every file lies in usps/, else "".
std::string shared_folder(const std::map<std::string, std::string>& archived) {
  const std::string& first = archived.begin()->first;
  const std::string folder = first.substr(0, first.find('/') + 1);
  const bool shared =
      std::all_of(archived.begin(), archived.end(), [&](const auto& f) { return f.first.starts_with(folder); });
  return shared ? folder : "";
}

std::map<std::string, std::string> read_archive(const fs::path& path) {
  std::map<std::string, std::string> archived;
  io::visit_archive(path, [&](const std::string& name, std::string& bytes) { archived[name] = std::move(bytes); });
  if (archived.empty()) return archived;
  const size_t prefix = shared_folder(archived).size();
  if (prefix == 0) return archived;
  std::map<std::string, std::string> stripped;
  for (auto& [name, bytes] : archived) stripped[name.substr(prefix)] = std::move(bytes);
  return stripped;
}

}  // namespace

FileTree FileTree::open(const fs::path& path) {
  FileTree tree;
  tree.root_ = path;
  std::error_code error;
  if (!fs::exists(path, error)) fail_user("there is no file or folder {}", path.string());
  if (fs::is_directory(path, error)) {
    tree.files_ = list_folder(path);
  } else {
    tree.archived_ = std::make_shared<const std::map<std::string, std::string>>(read_archive(path));
    for (const auto& entry : *tree.archived_) tree.files_.push_back(entry.first);
  }
  if (tree.files_.empty()) fail_user("{} holds no files", path.string());
  return tree;
}

bool FileTree::contains(const std::string& file) const {
  return std::binary_search(files_.begin(), files_.end(), file);
}

std::string FileTree::find(const std::string& name) const {
  for (const std::string& file : files_) {
    if (file == name || file.ends_with("/" + name)) return file;
  }
  return "";
}

std::string FileTree::read(const std::string& file) const {
  if (!contains(file)) fail_user("{} is missing", where(file));
  return archived_ ? archived_->at(file) : read_file(root_ / file);
}

std::string FileTree::read_inflated(const std::string& file) const {
  std::string bytes = read(file);
  return io::is_gzipped(bytes) ? io::gunzip(bytes, where(file)) : bytes;
}

std::string FileTree::where(const std::string& file) const {
  return archived_ ? fmt::format("{} in {}", file, root_.string()) : (root_ / file).string();
}

}  // namespace sotto::data
