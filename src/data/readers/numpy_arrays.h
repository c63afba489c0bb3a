// NumPy arrays as a dataset: an .npz file, or a folder of .npy files.
//
//   x, y                         as in a feature file; also called x_train and y_train
//   test_x, test_y               optional; also called x_test and y_test
//   domain, test_domain          optional
//
// Images may be uint8 [N, H, W] and [N, H, W, C] as well. Labels may be any whole numbers. Other arrays are left alone.
#pragma once

#include "data/dataset.h"
#include "data/file_tree.h"

#include <string>

namespace sotto::data {

bool is_numpy_arrays(const FileTree& tree);
Dataset read_numpy_arrays(const FileTree& tree, const std::string& name);

}  // namespace sotto::data
