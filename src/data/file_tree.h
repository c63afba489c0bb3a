// The files of a dataset, be it a folder or an archive of one.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace sotto::data {

class FileTree {
 public:
  // A folder is listed (hidden files left out); an archive is read into memory, without the folder that all its files
  // share. A missing path, an empty folder or archive, or a corrupt archive is a UserError.
  static FileTree open(const std::filesystem::path& path);

  // Paths relative to the root with '/' between parts, sorted.
  const std::vector<std::string>& files() const { return files_; }
  bool contains(const std::string& file) const;
  // The first file whose last path component is `name`, or "".
  std::string find(const std::string& name) const;

  // The file's bytes; safe from several threads. A missing file is a UserError.
  std::string read(const std::string& file) const;
  // The same, inflated if gzipped.
  std::string read_inflated(const std::string& file) const;

  // What to call a file in messages.
  std::string where(const std::string& file) const;
  const std::filesystem::path& root() const { return root_; }

 private:
  std::filesystem::path root_;
  std::vector<std::string> files_;
  std::shared_ptr<const std::map<std::string, std::string>> archived_;  // null for a folder
};

}  // namespace sotto::data
