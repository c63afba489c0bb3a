// A dataset as one safetensors file: pre-extracted features, and the cache of decoded datasets.
//
//   x                            float16, float32 or float64 [N, D]: features; uint8 [N, C, H, W]: images;
//                                int32 or int64 [N, L]: tokens
//   y                            int32 or int64 [N]
//   domain                       the same, optional (one domain)
//   test_x, test_y, test_domain  optional
//   metadata                     class_names, domain_names: JSON lists of strings, optional
#pragma once

#include "base/named_tensors.h"
#include "data/dataset.h"

#include <filesystem>
#include <map>
#include <string>

namespace sotto::data {

// Images share the file's pages. Missing or ill-shaped tensors, labels out of range and values that are not finite are
// UserErrors.
Dataset read_feature_file(const std::filesystem::path& path, const std::string& name);

// The same for tensors under these names, wherever they come from; `path` names them in errors. The metadata may lack
// everything.
Dataset dataset_of(const NamedTensors& tensors, const std::map<std::string, std::string>& metadata,
                   const std::filesystem::path& path, const std::string& name);

// Any dataset but a text one. `extra` is added to the metadata. Written atomically.
void write_feature_file(const std::filesystem::path& path, const Dataset& dataset,
                        const std::map<std::string, std::string>& extra = {});

}  // namespace sotto::data
