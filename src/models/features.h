// Features of a frozen backbone, or of a formula that has no weights, computed once and kept.
#pragma once

#include "data/dataset.h"
#include "data/options.h"
#include "data/origin.h"
#include "models/model.h"
#include "models/options.h"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace sotto::models {

struct Features {
  data::Dataset dataset;       // kFeatures: the backbone's feature vectors in place of the records
  std::filesystem::path file;  // a feature file, which is also a dataset by path
  bool was_cached = false;
};

// The dataset that `data` describes through the backbone data.features. The cache is keyed by the backbone's weights,
// the image size and the records themselves, so that a stale one is never used; images are data.image_size pixels a
// side, or else what suits the backbone. Ctrl-C ends it with Interrupted and
// keeps what was made of the part that it was at, for the next call.
Features load_features(const data::DataOptions& data, uint64_t seed);

// Feature vectors of images as the backbone sees them, uncached: uint8 [N, channels, height, width].
at::Tensor features_of_images(const std::string& backbone, const at::Tensor& images, const std::string& title);

// The shape of one record as the backbone data.features sees it: images brought to its size.
std::vector<int64_t> backbone_input(const data::DataOptions& data, uint64_t seed);

// The records that both the features of a file and the backbone that made them were made of; nothing if there are none,
// if the file does not say, or if it is no feature file.
std::optional<data::Part> seen_by_backbone(const std::filesystem::path& feature_file);

// Feature vectors [N, width] of all records, on all cores, with a progress bar. Each is computed on its own, so that it
// depends on its record alone, to the last bit. The model is put into evaluation mode.
// Ctrl-C ends it with Interrupted; what was made is then kept in the file `partial`, if one is named, and a call with
// the same file goes on from there. The name must tell records and model apart from all others.
at::Tensor compute_features(Model& model, const data::Records& records, const std::string& title,
                            const std::filesystem::path& partial = {});

}  // namespace sotto::models
