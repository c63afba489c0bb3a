// The small optical digits: 1,797 grey 8×8 images as CSV rows of 64 values in 0…16 and a label.
#pragma once

#include "data/dataset.h"
#include "data/file_tree.h"

#include <string>

namespace sotto::data {

// digits.csv or digits.csv.gz. There is no test split.
Dataset read_optdigits(const FileTree& tree, const std::string& name);

}  // namespace sotto::data
