#include "models/features.h"

#include "base/error.h"
#include "base/files.h"
#include "base/interrupt.h"
#include "base/log.h"
#include "base/parallel.h"
#include "base/progress.h"
#include "data/readers/feature_file.h"
#include "data/source.h"
#include "io/safetensors.h"
#include "models/fixed/timm_vit.h"
#include "models/script/opaque.h"
#include "models/task_data.h"
#include "models/vision_language/clip_model.h"
#include "models/weights/pretrained_card.h"
#include "models/weights/weight_store.h"

#include <ATen/ATen.h>

#include <nlohmann/json.hpp>

#include <map>
#include <set>

namespace sotto::models {
namespace {

constexpr const char* kRecordsKey = "records_origin";
constexpr const char* kBackboneKey = "backbone_origin";

std::string hash_tensor(const at::Tensor& tensor) {
  if (!tensor.defined()) return "";
  const at::Tensor dense = tensor.contiguous();
  return sha256({static_cast<const char*>(dense.data_ptr()), static_cast<size_t>(dense.nbytes())});
}

// The weights' own bytes: a TensorFlow.js model is all files of its folder.
std::string hash_weights(const fs::path& weights) {
  if (weights.filename() != "model.json") return sha256_of_file(weights);
  std::set<std::string> shards;
  for (const auto& entry : fs::directory_iterator(weights.parent_path()))
    if (entry.is_regular_file()) shards.insert(entry.path().string());
  std::string hashes;
  for (const std::string& shard : shards) hashes += sha256_of_file(shard);
  return sha256(hashes);
}

// To be raised when features are computed in another way.
constexpr int kVersion = 2;

std::string cache_key(const data::Dataset& dataset, const Backbone& backbone) {
  const std::string& weights = backbone.model.weights;
  std::string parts =
      fmt::format("{}|{}|{}|{}", kVersion, backbone.model.name,
                  weights.empty() ? "" : hash_weights(find_weights(weights)), fmt::join(dataset.record_shape(), "x"));
  for (const data::Records* records : {&dataset.train, &dataset.test})
    for (const at::Tensor& tensor : {records->x, records->y, records->domain})
      parts.append("|").append(hash_tensor(tensor));
  return sha256(parts).substr(0, 16);
}

// A text without its padding.
at::Tensor trimmed(const at::Tensor& x) {
  if (x.scalar_type() != at::kLong) return x;
  return x.narrow(1, 0, std::max<int64_t>(x.ne(0).sum().item<int64_t>(), 1));
}

data::Dataset load_records(data::DataOptions options, const Backbone& backbone, uint64_t seed) {
  if (options.image_size == 0) options.image_size = backbone.image_size;
  options.features.clear();
  data::Dataset dataset = data::load_dataset(options, seed);
  if (dataset.kind == data::Kind::kText) tokenise(dataset, backbone.model.weights);
  if (dataset.kind == data::Kind::kFeatures)
    fail_user("dataset '{}' is already a table of features; a backbone needs images or text", dataset.name);
  return dataset;
}

std::shared_ptr<Model> make_backbone(const Backbone& backbone, const data::Dataset& dataset) {
  if (backbone.model.name.starts_with("clip")) {
    return make_clip_backbone(backbone.model.weights, backbone.model.name == "clip-patches");
  }
  if (backbone.model.name == kTimmVit) return std::make_shared<TimmVit>(backbone.model.weights);
  const Task task{dataset.record_shape(), dataset.classes(), dataset.kind == data::Kind::kTokens};
  if (backbone.model.name == kScriptBackbone) return make_script_backbone(backbone.model.weights, task);
  RandomStream init(0, "unused-classifier");
  return make_model(backbone.model, task, init);
}

// What the file says of itself, so that features by path are known for what they are.
std::map<std::string, std::string> description(const data::DataOptions& data) {
  std::map<std::string, std::string> metadata{{"backbone", data.features}};
  if (const auto card = find_pretrained_card(data.features)) {
    metadata[kRecordsKey] = data::to_json(data::origin_of(data)).dump();
    metadata[kBackboneKey] = data::to_json(card->origin).dump();
  }
  return metadata;
}

// False if the file does not hold what it should.
bool read_cache(const fs::path& file, data::Dataset& dataset) {
  try {
    data::Dataset cached = data::read_feature_file(file, dataset.name);
    if (cached.train.size() != dataset.train.size() || cached.test.size() != dataset.test.size()) return false;
    dataset = std::move(cached);
    return true;
  } catch (const UserError& error) {
    warn("{}: computing the features again", error.what());
    return false;
  }
}

// Features that were made before the work was stopped. The name of the file says of what.
class PartialFeatures {
 public:
  explicit PartialFeatures(fs::path file) : file_(std::move(file)) {}

  // Fills the rows that are known; how many they are.
  int64_t restore(at::Tensor& features) const {
    std::error_code error;
    if (file_.empty() || !fs::exists(file_, error)) return 0;
    try {
      const io::SafeTensors kept = io::read_safetensors(file_);
      const at::Tensor values = find_tensor(kept.tensors, "features");
      const at::Tensor rows = find_tensor(kept.tensors, "rows");
      if (!values.defined() || !rows.defined() || values.sizes() != features.sizes()) return 0;
      features.copy_(values);
      return rows.item<int64_t>();
    } catch (const UserError&) {
      return 0;  // damaged: begin again
    }
  }

  void keep(const at::Tensor& features, int64_t rows) const {
    if (file_.empty()) return;
    make_folder(file_.parent_path());
    io::write_safetensors(
        file_, {.tensors = {{"features", features}, {"rows", at::scalar_tensor(rows, at::kLong)}}, .metadata = {}});
  }

  void remove() const {
    std::error_code ignored;
    if (!file_.empty()) fs::remove(file_, ignored);
  }

 private:
  fs::path file_;
};

}  // namespace

at::Tensor compute_features(Model& model, const data::Records& records, const std::string& title,
                            const fs::path& partial) {
  model.eval();
  const int64_t count = records.size();
  at::Tensor features = at::zeros({count, model.feature_width()});
  const PartialFeatures kept(partial);
  const int64_t before = kept.restore(features);
  int64_t done = before;
  Progress progress(title, count - before);
  const auto work = [&](int64_t item, int) {
    if (interrupted()) throw Interrupted("stopped");
    const at::NoGradGuard no_grad;
    const int64_t row = before + item;
    data::Batch one;
    data::gather(records, at::scalar_tensor(row, at::kLong).view({1}), one);
    features[row].copy_(model.features(trimmed(one.x))[0]);
  };
  try {
    parallel_in_order(count - before, available_threads(), work, [&](int64_t item) {
      done = before + item + 1;
      progress.advance(1);
    });
  } catch (const Interrupted&) {
    kept.keep(features, done);
    throw Interrupted(fmt::format("stopped; the features of {} of {} records are {}", done, count,
                                  partial.empty() ? "lost" : "kept, and the same command goes on from there"));
  }
  kept.remove();
  return features;
}

std::optional<data::Part> seen_by_backbone(const fs::path& feature_file) {
  std::error_code error;
  if (feature_file.extension() != ".safetensors" || !fs::exists(feature_file, error)) return std::nullopt;
  const auto metadata = io::read_safetensors(feature_file).metadata;
  if (!metadata.contains(kRecordsKey) || !metadata.contains(kBackboneKey)) return std::nullopt;
  try {
    const auto origin = [&](const char* key) { return data::origin_from(nlohmann::json::parse(metadata.at(key))); };
    return data::common_part(origin(kBackboneKey), origin(kRecordsKey));
  } catch (const nlohmann::json::exception& damage) {
    fail_user("{}: damaged metadata ({}); compute the features again with `sotto data features`", feature_file.string(),
              damage.what());
  }
}

at::Tensor features_of_images(const std::string& backbone, const at::Tensor& images, const std::string& title) {
  data::Dataset dataset;
  dataset.class_names = {"one", "other"};
  dataset.train = {.x = images,
                   .y = at::zeros({images.size(0)}, at::kLong),
                   .domain = at::zeros({images.size(0)}, at::kLong),
                   .texts = {}};
  const std::shared_ptr<Model> model = make_backbone(find_backbone(backbone), dataset);
  return compute_features(*model, dataset.train, title);
}

std::vector<int64_t> backbone_input(const data::DataOptions& data, uint64_t seed) {
  return load_records(data, find_backbone(data.features), seed).record_shape();
}

Features load_features(const data::DataOptions& data, uint64_t seed) {
  const Backbone backbone = find_backbone(data.features);
  Features loaded;
  loaded.dataset = load_records(data, backbone, seed);
  data::Dataset& dataset = loaded.dataset;
  loaded.file = data_home() / "cache" /
                fmt::format("features-{}-{}-{}.safetensors", dataset.name, fs::path(data.features).filename().string(),
                            cache_key(dataset, backbone));
  loaded.was_cached = fs::exists(loaded.file) && read_cache(loaded.file, dataset);
  if (!loaded.was_cached) {
    const std::shared_ptr<Model> model = make_backbone(backbone, dataset);
    make_folder(loaded.file.parent_path());
    for (data::Records* records : {&dataset.train, &dataset.test}) {
      if (records->size() == 0) continue;
      const char* part = records == &dataset.train ? ".train.part" : ".test.part";
      records->x = compute_features(*model, *records, fmt::format("{} features of {}", data.features, dataset.name),
                                    fs::path(loaded.file).concat(part));
    }
    dataset.kind = data::Kind::kFeatures;
    data::validate(dataset);
    make_folder(loaded.file.parent_path());
    data::write_feature_file(loaded.file, dataset, description(data));
  }
  return loaded;
}

}  // namespace sotto::models
