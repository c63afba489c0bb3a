// The IDX format of MNIST and its relatives, plain or gzipped.
//
//   file := 0x00 0x00 0x08 dimensions(u8) size(u32, big-endian)… bytes
#pragma once

#include "data/dataset.h"
#include "data/file_tree.h"

#include <string>
#include <vector>

namespace sotto::data {

// True if the tree holds files named like …train-images… and …train-labels….
bool is_idx(const FileTree& tree);

// train-images, train-labels and, if present, t10k- or test-images and -labels. No class names = "0", "1", … as far as
// labels go. Truncated or foreign files and image and label files of different lengths are UserErrors.
Dataset read_idx(const FileTree& tree, const std::string& name, std::vector<std::string> class_names = {});

// One IDX file's uint8 tensor; `where` names it in errors.
at::Tensor parse_idx(const std::string& bytes, const std::string& where);

}  // namespace sotto::data
