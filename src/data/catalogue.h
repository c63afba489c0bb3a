// The datasets known by name, one line each.
#pragma once

#include "data/dataset.h"

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace sotto::data {

struct CatalogueEntry {
  std::string name;
  std::string what;
  std::string files;         // what a folder NAME along the search path must hold
  bool installable = false;  // `sotto data install NAME` can bring it
  bool needs_decoding = false;
  std::function<Dataset(const std::filesystem::path& path, int64_t image_size)> read;
};

const std::vector<CatalogueEntry>& catalogue();

// The entry called `name`, or null.
const CatalogueEntry* find_entry(const std::string& name);

// One line for people: how to get this dataset.
std::string how_to_get(const CatalogueEntry& entry);

}  // namespace sotto::data
