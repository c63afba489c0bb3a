// Decoded datasets, kept so that thousands of images are decoded once.
#pragma once

#include "data/dataset.h"

#include <filesystem>
#include <functional>
#include <string>

namespace sotto::data {

// The dataset that `make` would give: from the cache if it was cached under the same name and key with the same stamp,
// by the same version of the readers; otherwise made now and cached. The key tells variants apart, the stamp says which
// state of the source one was made from: a new stamp replaces the old file. A corrupt cache is rebuilt, a cache that
// cannot be written is only warned about.
Dataset cached(const std::string& name, const std::string& key, const std::string& stamp,
               const std::function<Dataset()>& make);

// The same for what is decoded from a file or folder: the key is its path and the image size, the stamp the size and
// time of the file, or of every file in the folder.
Dataset cached_decoding(const std::string& name, const std::filesystem::path& source, int64_t image_size,
                        const std::function<Dataset()>& decode);

}  // namespace sotto::data
