// What features of held-out records look like in two dimensions, after a run's first round and after its last.
#pragma once

#include <nlohmann/json.hpp>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace sotto::run {

// One point per record.
struct FeaturePicture {
  std::string title;
  std::vector<std::string> classes;  // names, by label
  std::vector<double> x, y;
  std::vector<int64_t> label;
};

struct Embedding {
  std::vector<FeaturePicture> pictures;  // after the first round, after the last; the same records in the same order
  std::filesystem::path file;            // where they were written
};

// Places held-out records of at most ten clients, `records` of them shared out evenly but at least one per client, each
// as its client's own model sees it, and writes embedding.json into the run's folder. A run without a checkpoint or
// without held-out records is a UserError.
Embedding embed_features(const std::filesystem::path& run_folder, int64_t records);

// What embedding.json holds.
nlohmann::json to_json(const std::vector<FeaturePicture>& pictures);

}  // namespace sotto::run
