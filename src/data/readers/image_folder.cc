#include "data/readers/image_folder.h"

#include "base/error.h"
#include "base/text.h"
#include "data/readers/image_listing.h"
#include "io/images/decode.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

namespace sotto::data {
namespace {

struct Item {
  std::string file;
  std::string domain;
  std::string label;
  bool is_test = false;
};

bool is_test_folder(const std::string& folder) {
  return folder == "test" || folder == "val" || folder == "validation";
}

std::vector<std::string> image_files(const FileTree& tree) {
  std::vector<std::string> images;
  std::copy_if(tree.files().begin(), tree.files().end(), std::back_inserter(images), io::has_image_name);
  return images;
}

bool has_split_folders(const std::vector<std::string>& images) {
  std::set<std::string> tops;
  for (const std::string& image : images) tops.insert(image.substr(0, image.find('/')));
  return tops.size() == 2 && tops.contains("train") && std::any_of(tops.begin(), tops.end(), is_test_folder);
}

std::vector<Item> sort_into_items(const FileTree& tree, const std::string& name) {
  const auto images = image_files(tree);
  if (images.empty()) fail_user("{} holds no PNG or JPEG images", tree.root().string());
  const bool splits = has_split_folders(images);
  std::vector<Item> items;
  std::set<size_t> depths;
  for (const std::string& image : images) {
    auto parts = split(image, '/');
    const bool is_test = splits && is_test_folder(parts.front());
    if (splits) parts.erase(parts.begin());
    depths.insert(parts.size());
    if (parts.size() == 2) items.push_back({image, name, parts[0], is_test});
    if (parts.size() == 3) items.push_back({image, parts[0], parts[1], is_test});
  }
  if (depths.size() != 1 || items.empty()) {
    fail_user("{}: images must lie in class/ folders, or all in domain/class/ folders", tree.root().string());
  }
  return items;
}

// Sorted names of what `field` takes over the items, with their numbers.
std::map<std::string, int64_t> number_names(const std::vector<Item>& items, std::string Item::*field) {
  std::map<std::string, int64_t> numbers;
  for (const Item& item : items) numbers[item.*field] = 0;
  int64_t next = 0;
  for (auto& entry : numbers) entry.second = next++;
  return numbers;
}

std::vector<std::string> names_of(const std::map<std::string, int64_t>& numbers) {
  std::vector<std::string> names;
  for (const auto& entry : numbers) names.push_back(entry.first);
  return names;
}

}  // namespace

bool is_image_folder(const FileTree& tree) {
  return std::any_of(tree.files().begin(), tree.files().end(), io::has_image_name);
}

Dataset read_image_folder(const FileTree& tree, const std::string& name, int64_t image_size) {
  const auto items = sort_into_items(tree, name);
  const auto classes = number_names(items, &Item::label);
  const auto domains = number_names(items, &Item::domain);
  ImageListing listing;
  for (const Item& item : items) {
    (item.is_test ? listing.test : listing.train)
        .push_back({item.file, classes.at(item.label), domains.at(item.domain)});
  }
  listing.class_names = names_of(classes);
  listing.domain_names = names_of(domains);
  return decode_listing(tree, listing, name, image_size);
}

}  // namespace sotto::data
