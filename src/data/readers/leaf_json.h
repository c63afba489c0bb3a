// LEAF's JSON files (FEMNIST): users, num_samples, user_data: {user: {"x": [[784 numbers in 0…1], …], "y": [label,
// …]}}.
#pragma once

#include "data/dataset.h"
#include "data/file_tree.h"

#include <string>

namespace sotto::data {

bool is_leaf(const FileTree& tree);

// Every *.json under train/ and test/; without such folders all of them are training data. Each writer is a domain.
// Images are 28×28 grey, classes the 62 digits and letters.
Dataset read_leaf(const FileTree& tree, const std::string& name);

}  // namespace sotto::data
