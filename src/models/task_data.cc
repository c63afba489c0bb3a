#include "models/task_data.h"

#include "base/error.h"
#include "data/declared_classes.h"
#include "data/source.h"
#include "models/feature_frame.h"
#include "models/features.h"
#include "models/projection.h"
#include "models/text/wordpiece.h"
#include "models/weights/weight_store.h"

#include <ATen/ATen.h>

#include <fmt/format.h>

namespace sotto::models {
namespace {

constexpr int64_t kPublicRecords = 10000;  // as many as axes are fitted to
constexpr int64_t kRandomImages = 2000;
constexpr int64_t kLongestText = 128;  // what the sentence encoder was trained for

// All of one length that no record decides.
void tokenise(data::Records& records, const WordPiece& tokenizer) {
  if (records.size() > 0) {
    const at::Tensor tokens = tokenizer.encode_all(records.texts, kLongestText);
    records.x = at::constant_pad_nd(tokens, {0, kLongestText - tokens.size(1)});
  }
  records.texts.clear();
}

// `data` with one of its backbones; the first unless another is named.
data::DataOptions single_backbone(data::DataOptions data, const std::string& backbone = "") {
  data.features = backbone.empty() ? backbone_names(data.features).front() : backbone;
  return data;
}

// Features of every backbone that `data.features` names, joined by "+".
void load_feature_blocks(data::DataOptions data, uint64_t seed, TaskData& loaded) {
  std::vector<at::Tensor> train, test;
  for (const std::string& backbone : backbone_names(data.features)) {
    data.features = backbone;
    data::Dataset dataset = load_features(data, seed).dataset;
    loaded.feature_blocks.push_back(dataset.train.x.size(1));
    train.push_back(dataset.train.x);
    if (dataset.test.size() > 0) test.push_back(dataset.test.x);
    loaded.dataset = std::move(dataset);
  }
  if (train.size() == 1) return;
  loaded.dataset.train.x = at::cat(train, 1);
  if (!test.empty()) loaded.dataset.test.x = at::cat(test, 1);
}

// Of the public data that data.project_on names, through the same backbones.
at::Tensor public_features(const data::DataOptions& data, uint64_t seed) {
  if (auto known = projection_data(data)) {
    const std::vector<int64_t> shape = backbone_input(single_backbone(data), seed);
    if (shape.size() == 3 && known->image_size == 0) known->image_size = shape[1];
    known->limit = kPublicRecords;
    TaskData loaded;
    load_feature_blocks(*known, 0, loaded);
    return loaded.dataset.train.x;
  }
  std::vector<at::Tensor> blocks;
  for (const std::string& backbone : backbone_names(data.features)) {
    const std::vector<int64_t> shape = backbone_input(single_backbone(data, backbone), seed);
    if (shape.size() != 3) {
      fail_user(
          "data.project_on: '{}' has no images, so there is nothing to be had from random ones; name a public "
          "dataset",
          data.name);
    }
    const at::Tensor images = random_images(kRandomImages, shape[0], shape[1], shape[2]);
    blocks.push_back(features_of_images(backbone, images, fmt::format("{} features of random images", backbone)));
  }
  return at::cat(blocks, 1);
}

// Sees nothing of `loaded` but how wide it is.
void lay_on_public_axes(const data::DataOptions& data, uint64_t seed, TaskData& loaded) {
  const at::Tensor known = public_features(data, seed);
  data::Dataset& dataset = loaded.dataset;
  if (known.size(1) != dataset.train.x.size(1)) {
    fail_user(
        "data.project_on: records of '{}' have {} features, the clients' {}; take a dataset with as many channels",
        data.project_on, known.size(1), dataset.train.x.size(1));
  }
  const Projection projection = fit_projection(known, data.project);
  for (data::Records* records : {&dataset.train, &dataset.test}) {
    if (records->size() > 0) records->x = project(projection, records->x);
  }
  if (data.project > 0) loaded.feature_blocks = {data.project};
}

}  // namespace

void tokenise(data::Dataset& dataset, const std::string& weights) {
  const WordPiece tokenizer = WordPiece::open(find_tokenizer(weights));
  tokenise(dataset.train, tokenizer);
  tokenise(dataset.test, tokenizer);
  dataset.kind = data::Kind::kTokens;
}

TaskData load_task_data(const data::DataOptions& data, const ModelOptions& model, uint64_t seed) {
  const bool wants_tokens = is_token_model(model.name);
  TaskData loaded;
  if (data.features.empty()) {
    loaded.dataset = data::load_dataset(data, seed);
  } else {
    load_feature_blocks(data, seed, loaded);
    if (!data.project_on.empty()) lay_on_public_axes(data, seed, loaded);
  }
  data::declare_classes(loaded.dataset, data.classes);
  place_features(loaded.dataset, data);
  if (loaded.dataset.kind == data::Kind::kText) {
    if (!wants_tokens)
      fail_user(
          "dataset '{}' is text, which model '{}' cannot read: use model minilm, or set data.features = \"minilm\"",
          loaded.dataset.name, model.name);
    tokenise(loaded.dataset, model.weights.empty() ? "minilm" : model.weights);
  }
  loaded.task = {loaded.dataset.record_shape(), loaded.dataset.classes(), loaded.dataset.kind == data::Kind::kTokens};
  return loaded;
}

TaskData TaskDataCache::load(const data::DataOptions& data, const ModelOptions& model, uint64_t seed) {
  Key key;
  key.data.name = data.name;
  key.data.otherwise = data.otherwise;
  key.data.path = data.path;
  key.data.classes = data.classes;
  key.data.schema = data.schema;
  key.data.features = data.features;
  key.data.project_on = data.project_on;
  key.data.project = data.project;
  key.data.centre = data.centre;
  key.data.normalise = data.normalise;
  key.data.domains = data.domains;
  key.data.image_size = data.image_size;
  key.data.limit = data.limit;
  key.data.test_limit = data.test_limit;
  if (is_token_model(model.name)) key.tokenizer = fmt::format("{}|{}", model.name, model.weights);
  if (data.limit > 0 || data.test_limit > 0 || !data.domains.empty()) key.seed = seed;
  const std::lock_guard lock(mutex_);
  if (key_ != key) {
    last_ = {};
    key_.reset();
    last_ = load_task_data(data, model, seed);
    key_ = key;
  }
  return last_;
}

}  // namespace sotto::models
