#include "models/vision_language/aligned_towers.h"

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "data/dataset.h"
#include "io/images/decode.h"
#include "io/safetensors.h"
#include "models/model.h"
#include "models/text/minilm.h"
#include "models/text/wordpiece.h"
#include "models/weights/weight_store.h"
#include "models/weights/weights.h"

#include <ATen/ATen.h>
#include <ATen/ops/linalg_qr.h>
#include <ATen/ops/linalg_solve.h>

#include <nlohmann/json.hpp>

#include <mutex>

namespace sotto::models {
namespace {

constexpr double kRidge = 0.3;
constexpr double kTemperature = 0.02;
constexpr int64_t kBatch = 100;
constexpr int64_t kImageWidth = 2048;

std::vector<std::string> imagenet_names(const fs::path& file) {
  const auto json = nlohmann::json::parse(read_file(file), nullptr, false);
  std::vector<std::string> names;
  for (size_t i = 0; json.is_object() && i < json.size(); ++i)
    names.push_back(words_of_class(json.value(std::to_string(i), "")));
  if (names.empty()) fail_user("{}: not a list of ImageNet's classes", file.string());
  return names;
}

std::shared_ptr<Model> frozen(const std::string& weights, const Task& task) {
  RandomStream init(0, "unused-classifier");
  auto model = make_model(find_backbone(weights).model, task, init);
  model->eval();
  for (auto& parameter : model->parameters()) parameter.set_requires_grad(false);
  return model;
}

class AlignedTowers : public VisionLanguage {
 public:
  AlignedTowers()
      : tokenizer_(WordPiece::open(find_tokenizer("minilm"))),
        language_(frozen("minilm", {{SentenceEncoder::kLongest}, 2, true})),
        encoder_(dynamic_cast<SentenceEncoder*>(language_.get())) {
    SOTTO_INVARIANT(encoder_ != nullptr);
    const at::NoGradGuard no_grad;
    load_map();
    // Texts only ever reach the map's row space: there every cosine is what it is in the whole space.
    const auto [basis, coordinates] = at::linalg_qr(map_.t());
    basis_ = basis.contiguous();
    to_basis_ = coordinates.t().contiguous();
  }

  int64_t word_width() const override { return to_basis_.size(0); }
  int64_t feature_width() const override { return to_basis_.size(1); }
  int64_t longest_text() const override { return 128; }
  double temperature() const override { return kTemperature; }

  std::vector<int64_t> tokens(const std::string& text, int64_t longest) const override {
    std::vector<int64_t> all = tokenizer_.encode(text, longest_text());
    if (static_cast<int64_t>(all.size()) > longest) {
      all[static_cast<size_t>(longest) - 1] = all.back();
      all.resize(static_cast<size_t>(longest));
    }
    return all;
  }

  at::Tensor word_vectors(const std::vector<int64_t>& tokens) const override {
    return encoder_->word_vectors(at::tensor(tokens, at::kLong));
  }

  at::Tensor text_features(const at::Tensor& vectors, const at::Tensor& lengths) const override {
    const at::Tensor present = at::arange(vectors.size(1), at::kLong).unsqueeze(0).lt(lengths.unsqueeze(1));
    const at::Tensor features =
        at::matmul(encoder_->encode_vectors(vectors, present.to(vectors.scalar_type())), to_basis_);
    return features / features.norm(2, 1, true).clamp_min(1e-12);
  }

  at::Tensor image_features(const at::Tensor& records) const override {
    if (records.dim() != 2 || records.size(1) % kImageWidth != 0) {
      fail_user("encoder resnet50-minilm needs features of ResNet-50: set data.features = \"resnet50\"");
    }
    const at::Tensor patches = records.view({records.size(0), -1, kImageWidth});
    return at::matmul(patches / patches.norm(2, -1, true).clamp_min(1e-12), basis_);
  }

  at::Tensor encode_image(const std::string& bytes, const std::string& where) const override {
    const int64_t size = find_backbone("resnet50").image_size;
    const io::EncodedImages image{
        .count = 1, .bytes = [&](int64_t) { return bytes; }, .where = [&](int64_t) { return where; }};
    data::Records records;
    records.x = io::decode_images(image, size, "decoding");
    records.y = at::zeros({1}, at::kLong);
    data::Batch batch;
    data::gather(records, records.y, batch);
    const at::NoGradGuard no_grad;
    const std::lock_guard lock(mutex_);
    if (!vision_) vision_ = frozen("resnet50", {{3, size, size}, 2});
    return image_features(vision_->features(batch.x));
  }

 private:
  at::Tensor sentence_features(const std::vector<std::string>& sentences) {
    std::vector<at::Tensor> parts;
    const at::Tensor ids = tokenizer_.encode_all(sentences, longest_text());
    for (int64_t begin = 0; begin < ids.size(0); begin += kBatch)
      parts.push_back(language_->features(ids.narrow(0, begin, std::min(kBatch, ids.size(0) - begin))));
    return at::cat(parts);
  }

  // The map is kept: it takes seconds, and every run needs it.
  void load_map() {
    const fs::path vision = find_weights("resnet50");
    const std::string key =
        sha256(fmt::format("{}|{}|{}", sha256_of_file(vision), sha256_of_file(find_weights("minilm")), kRidge))
            .substr(0, 16);
    const fs::path file = data_home() / "cache" / fmt::format("alignment-resnet50-minilm-{}.safetensors", key);
    if (fs::exists(file)) {
      map_ = find_tensor(io::read_safetensors(file).tensors, "map").clone();
      return;
    }
    std::vector<std::string> sentences;
    for (const std::string& name : imagenet_names(vision.parent_path() / "labels.json"))
      sentences.push_back(fmt::format("a photo of a {}", name));
    const at::Tensor texts = sentence_features(sentences);
    at::Tensor rows = find_tensor(read_weights(vision), "fc1000.weight");
    SOTTO_INVARIANT(rows.defined() && rows.size(0) == texts.size(0) && rows.size(1) == kImageWidth);
    rows = rows / rows.norm(2, 1, true);
    map_ = ridge_map(texts, rows - rows.mean(0, true), kRidge);
    make_folder(file.parent_path());
    io::write_safetensors(file, {.tensors = {{"map", map_}}, .metadata = {}});
  }

  WordPiece tokenizer_;
  std::shared_ptr<Model> language_;
  SentenceEncoder* encoder_;
  at::Tensor map_;       // [384, 2048]
  at::Tensor basis_;     // [2048, 384]: an orthonormal basis of what the map reaches
  at::Tensor to_basis_;  // [384, 384]
  mutable std::mutex mutex_;
  mutable std::shared_ptr<Model> vision_;  // only for images that are not features yet
};

}  // namespace

std::shared_ptr<const VisionLanguage> open_aligned_towers() {
  return std::make_shared<AlignedTowers>();
}

at::Tensor ridge_map(const at::Tensor& texts, const at::Tensor& rows, double lambda) {
  const at::Tensor x = texts.to(at::kDouble);
  const at::Tensor gram = at::matmul(x.t(), x) + lambda * at::eye(x.size(1), at::kDouble);
  return at::linalg_solve(gram, at::matmul(x.t(), rows.to(at::kDouble))).to(at::kFloat);
}

}  // namespace sotto::models
