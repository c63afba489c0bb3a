// Images with a table of labels: train.csv (image_name,label) beside train/*.png, and the same for test.
#pragma once

#include "data/dataset.h"
#include "data/file_tree.h"

#include <string>

namespace sotto::data {

bool is_labelled_images(const FileTree& tree);

// Labels are whole numbers from 0. A listed image that is missing, or a label that is no such number, is a UserError.
Dataset read_labelled_images(const FileTree& tree, const std::string& name, int64_t image_size);

}  // namespace sotto::data
