// Decoded datasets, kept so that thousands of images are decoded once.
#pragma once

#include "data/dataset.h"

#include <filesystem>
#include <functional>
#include <string>

namespace sotto::data {

// The dataset that `decode` would give: from the cache if the source (a file, or every file of a folder) has the size
// and time it had when the cache was written, by the same version of the readers; otherwise decoded now and cached. A
// corrupt cache is rebuilt, a cache that cannot be written is only warned about.
Dataset cached(const std::string& name, const std::filesystem::path& source, int64_t image_size,
               const std::function<Dataset()>& decode);

}  // namespace sotto::data
