// The user's own data by path.
#pragma once

#include "data/dataset.h"

#include <filesystem>
#include <string>

namespace sotto::data {

// Finds out what lies at `path` and reads it: a .safetensors feature file; a .csv table or text file; a folder or
// archive with IDX files, CIFAR binary files, LEAF JSON files, images with a table of labels, images sorted into
// folders, or train.csv. Anything else is a UserError that lists these.
Dataset read_custom(const std::filesystem::path& path, const std::string& name, int64_t image_size);

}  // namespace sotto::data
