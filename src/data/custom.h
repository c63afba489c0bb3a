// The user's own data by path.
#pragma once

#include "data/dataset.h"
#include "data/readers/table_schema.h"

#include <filesystem>
#include <string>

namespace sotto::data {

// Finds out what lies at `path` and reads it: a .safetensors feature file; a .csv table or text file; a folder or
// archive with IDX files, CIFAR binary files, LEAF JSON files, images with a table of labels, images sorted into
// folders, or train.csv. Anything else is a UserError that lists these, and so is a declared schema for what is no table.
Dataset read_custom(const std::filesystem::path& path, const std::string& name, int64_t image_size,
                    const SchemaChoice& schema = {});

// Whether it is a .csv file or a folder that may hold one as train.csv.
bool may_be_table(const std::filesystem::path& path);

}  // namespace sotto::data
