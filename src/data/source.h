// Datasets by name or by path.
#pragma once

#include "data/dataset.h"
#include "data/options.h"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace sotto::data {

// Loads what [data] asks for: finds it along $SOTTO_DATA, then the system's dataset folder, then sotto's own data home,
// or at options.path; decodes it once into the cache; applies domains, image_size and limit. A missing dataset is a
// UserError that names the package or file to put where.
Dataset load_dataset(const DataOptions& options, uint64_t seed);

// The same before domains, image_size and limit: everything that the dataset has, in its own size.
Dataset load_whole(const DataOptions& options);

// Datasets that are made of others: whether this is one, and which it takes under these options, here and now.
bool is_family(const std::string& name);
std::vector<std::string> family_members(const DataOptions& options);

// What `sotto data list` shows of one dataset.
struct DatasetInfo {
  std::string name;
  std::string what;                               // "70,000 grey 28×28 images of clothing, 10 classes"
  std::optional<std::filesystem::path> location;  // where it was found
  std::string how_to_get;                         // one line for people: a command, or which files to put where
  bool installable = false;                       // `sotto data install NAME` can bring it
};

std::vector<DatasetInfo> list_datasets();

}  // namespace sotto::data
