// Images sorted into folders: domain/class/*.{png,jpg,jpeg}, or class/* for one domain.
#pragma once

#include "data/dataset.h"
#include "data/file_tree.h"

#include <string>

namespace sotto::data {

bool is_image_folder(const FileTree& tree);

// Classes and domains are folder names in order; files that are no images are passed over. Top folders `train` and
// `test` (or `val`) hold the two splits; otherwise everything is training data. image_size as in decode_images. Images
// at different depths are a UserError.
Dataset read_image_folder(const FileTree& tree, const std::string& name, int64_t image_size);

}  // namespace sotto::data
