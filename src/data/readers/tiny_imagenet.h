// Tiny-ImageNet's layout: wnids.txt, words.txt, train/WNID/images/*.JPEG, val/images/*.JPEG, val/val_annotations.txt.
#pragma once

#include "data/dataset.h"
#include "data/file_tree.h"

#include <string>

namespace sotto::data {

bool is_tiny_imagenet(const FileTree& tree);

// Classes in the order of wnids.txt, named by words.txt; the validation images are the test split.
Dataset read_tiny_imagenet(const FileTree& tree, const std::string& name, int64_t image_size);

}  // namespace sotto::data
