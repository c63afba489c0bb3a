#include "data/readers/tiny_imagenet.h"

#include "base/error.h"
#include "base/text.h"
#include "data/readers/image_listing.h"
#include "io/images/decode.h"

#include <map>

namespace sotto::data {
namespace {

constexpr const char* kAnnotations = "val/val_annotations.txt";

std::vector<std::string> lines_of(const FileTree& tree, const std::string& file) {
  std::vector<std::string> lines;
  for (const std::string& line : split(tree.read(file), '\n')) {
    if (std::string text = trim(line); !text.empty()) lines.push_back(std::move(text));
  }
  if (lines.empty()) fail_user("{} is empty", tree.where(file));
  return lines;
}

std::vector<std::string> class_names(const FileTree& tree, const std::vector<std::string>& ids) {
  std::map<std::string, std::string> words;
  if (tree.contains("words.txt")) {
    for (const std::string& line : lines_of(tree, "words.txt")) {
      const auto parts = split(line, '\t');
      if (parts.size() >= 2) words[parts[0]] = trim(parts[1].substr(0, parts[1].find(',')));
    }
  }
  std::vector<std::string> names;
  for (const std::string& id : ids) names.push_back(words.contains(id) ? words[id] : id);
  return names;
}

std::vector<ListedImage> list_training(const FileTree& tree, const std::map<std::string, int64_t>& numbers) {
  std::vector<ListedImage> listed;
  for (const std::string& file : tree.files()) {
    if (!file.starts_with("train/") || !io::has_image_name(file)) continue;
    const auto found = numbers.find(split(file, '/')[1]);
    if (found == numbers.end()) fail_user("{}: its folder is no class of wnids.txt", tree.where(file));
    listed.push_back({file, found->second});
  }
  return listed;
}

std::vector<ListedImage> list_validation(const FileTree& tree, const std::map<std::string, int64_t>& numbers) {
  std::vector<ListedImage> listed;
  int64_t row = 0;
  for (const std::string& line : lines_of(tree, kAnnotations)) {
    ++row;
    const auto parts = split(line, '\t');
    const std::string file = "val/images/" + parts[0];
    const auto found = parts.size() < 2 ? numbers.end() : numbers.find(parts[1]);
    if (found == numbers.end()) fail_user("{}, row {}: no known class", tree.where(kAnnotations), row);
    if (!tree.contains(file))
      fail_user("{}, row {}: the image {} is missing", tree.where(kAnnotations), row, tree.where(file));
    listed.push_back({file, found->second});
  }
  return listed;
}

}  // namespace

bool is_tiny_imagenet(const FileTree& tree) {
  return tree.contains("wnids.txt") && tree.contains(kAnnotations);
}

Dataset read_tiny_imagenet(const FileTree& tree, const std::string& name, int64_t image_size) {
  const auto ids = lines_of(tree, "wnids.txt");
  std::map<std::string, int64_t> numbers;
  for (const std::string& id : ids) numbers.emplace(id, static_cast<int64_t>(numbers.size()));
  ImageListing listing;
  listing.train = list_training(tree, numbers);
  listing.test = list_validation(tree, numbers);
  listing.class_names = class_names(tree, ids);
  listing.domain_names = {name};
  return decode_listing(tree, listing, name, image_size);
}

}  // namespace sotto::data
