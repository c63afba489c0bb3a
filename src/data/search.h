// Where datasets lie.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace sotto::data {

// Folders that may hold datasets, in the order they are searched: those of $SOTTO_DATA (colon-separated), the system's
// /usr/share/datasets, and `data` in sotto's own home.
std::vector<std::filesystem::path> search_roots();

// The first of ROOT/NAME, ROOT/NAME.tar.gz (or another archive, or .safetensors), ROOT/digits/NAME… that exists. A
// folder that holds nothing but an archive stands for that archive; an empty folder is passed over.
std::optional<std::filesystem::path> find_dataset(const std::string& name);

// Where installed datasets and weights go.
std::filesystem::path installed_data_folder();
std::filesystem::path installed_weights_folder();

}  // namespace sotto::data
