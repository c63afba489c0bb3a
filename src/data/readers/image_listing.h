// Labelled image files of a tree, ready to be decoded: what the readers of image collections have in common.
#pragma once

#include "data/dataset.h"
#include "data/file_tree.h"

#include <string>
#include <vector>

namespace sotto::data {

struct ListedImage {
  std::string file;
  int64_t label = 0;
  int64_t domain = 0;
};

struct ImageListing {
  std::vector<ListedImage> train;
  std::vector<ListedImage> test;
  std::vector<std::string> class_names;
  std::vector<std::string> domain_names;
};

// Decodes all images to one shape (see decode_images) and validates the result.
Dataset decode_listing(const FileTree& tree, const ImageListing& listing, const std::string& name, int64_t image_size);

}  // namespace sotto::data
