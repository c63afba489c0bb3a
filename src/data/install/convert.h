// Packages' own formats, turned once into files our readers know.
#pragma once

#include "data/install/packages.h"

#include <filesystem>

namespace sotto::data {

// CIFAR-10 as sheets of PNG, one image a row, and lists of labels → data_batch_1…5.bin, test_batch.bin,
// batches.meta.txt in `folder`.
void convert_cifar10(const PackageFiles& files, const std::filesystem::path& folder);

// Drawings as lines of 784 numbers in 0…1, a gzipped file per class → quickdraw.safetensors in `folder`.
void convert_quickdraw(const PackageFiles& files, const std::filesystem::path& folder);

}  // namespace sotto::data
