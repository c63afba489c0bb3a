// The MiniLM sentence encoder: a BERT of six layers with Hugging Face's parameter names; a text's feature is the mean
// of its token vectors, scaled to length one.
#include "models/text/minilm.h"

#include "base/error.h"
#include "models/architectures/headed_model.h"

#include <ATen/ATen.h>

#include <fmt/format.h>

namespace sotto::models {
namespace {

constexpr int64_t kVocabulary = 30522;
constexpr int64_t kPositions = SentenceEncoder::kLongest;
constexpr int64_t kWidth = 384;
constexpr int64_t kInner = 1536;
constexpr int64_t kDepth = 6;
constexpr int64_t kHeads = 12;
constexpr double kEps = 1e-12;
constexpr double kInitStddev = 0.02;

struct EncoderLayer {
  std::shared_ptr<Linear> query, key, value, attention_out, inner, out;
  std::shared_ptr<LayerNorm> attention_norm, norm;

  at::Tensor operator()(const at::Tensor& x, const at::Tensor& mask) const {
    const at::Tensor seen = attend(query->forward(x), key->forward(x), value->forward(x), kHeads, mask);
    const at::Tensor y = attention_norm->forward(attention_out->forward(seen) + x);
    return norm->forward(out->forward(at::gelu(inner->forward(y))) + y);
  }
};

class MiniLm : public HeadedModel, public SentenceEncoder {
 public:
  explicit MiniLm(const Blueprint& blueprint) : init_(blueprint.init) {
    const auto& shape = blueprint.task.record_shape;
    if (shape.size() != 1 || shape[0] < 1 || shape[0] > kPositions)
      fail_user("model '{}' reads texts of 1 to {} tokens", blueprint.options.name, kPositions);
    words_ = embedding("word_embeddings", kVocabulary);
    positions_ = embedding("position_embeddings", kPositions);
    types_ = embedding("token_type_embeddings", 2);
    norm_ = add<LayerNorm>(*this, "embeddings.LayerNorm", kWidth, kEps);
    for (int64_t i = 0; i < kDepth; ++i) add_layer(fmt::format("encoder.layer.{}.", i));
    add_head(blueprint, kWidth);
  }

  at::Tensor features(const at::Tensor& x) override {
    const int64_t largest = x.max().item<int64_t>();
    if (largest >= kVocabulary) fail_user("token {} is outside of the model's vocabulary of {}", largest, kVocabulary);
    return encode_vectors(words_->forward(x), x.ne(0).to(words_->weight.scalar_type()));
  }

  at::Tensor word_vectors(const at::Tensor& ids) override { return words_->forward(ids); }

  at::Tensor encode_vectors(const at::Tensor& vectors, const at::Tensor& present) override {
    const int64_t length = vectors.size(1);
    const at::Tensor hidden = encode(vectors, (1.0 - present).view({-1, 1, 1, length}) * kHidden);
    const at::Tensor weights = present.unsqueeze(2);
    const at::Tensor mean = (hidden * weights).sum(1) / weights.sum(1).clamp_min(1.0);
    return mean / mean.norm(2, 1, true).clamp_min(1e-12);
  }

 private:
  static constexpr double kHidden = -1e9;  // what padding's attention scores are lowered by

  at::Tensor encode(const at::Tensor& vectors, const at::Tensor& mask) {
    const at::Tensor positions = at::arange(vectors.size(1), at::kLong).expand(vectors.sizes().slice(0, 2));
    at::Tensor hidden = vectors + positions_->forward(positions) + types_->forward(at::zeros_like(positions));
    hidden = norm_->forward(hidden);
    for (const EncoderLayer& layer : layers_) hidden = layer(hidden, mask);
    return hidden;
  }

  std::shared_ptr<Embedding> embedding(const std::string& name, int64_t count) {
    auto layer = add<Embedding>(*this, "embeddings." + name, count, kWidth, init_);
    init_normal(layer->weight, kInitStddev, init_);
    return layer;
  }

  std::shared_ptr<Linear> linear(const std::string& name, int64_t in, int64_t out) {
    auto layer = add<Linear>(*this, name, in, out, init_);
    init_normal(layer->weight, kInitStddev, init_);
    const at::NoGradGuard no_grad;
    layer->bias.zero_();
    return layer;
  }

  void add_layer(const std::string& name) {
    EncoderLayer layer;
    layer.query = linear(name + "attention.self.query", kWidth, kWidth);
    layer.key = linear(name + "attention.self.key", kWidth, kWidth);
    layer.value = linear(name + "attention.self.value", kWidth, kWidth);
    layer.attention_out = linear(name + "attention.output.dense", kWidth, kWidth);
    layer.attention_norm = add<LayerNorm>(*this, name + "attention.output.LayerNorm", kWidth, kEps);
    layer.inner = linear(name + "intermediate.dense", kWidth, kInner);
    layer.out = linear(name + "output.dense", kInner, kWidth);
    layer.norm = add<LayerNorm>(*this, name + "output.LayerNorm", kWidth, kEps);
    layers_.push_back(std::move(layer));
  }

  at::Generator init_;
  std::shared_ptr<Embedding> words_, positions_, types_;
  std::shared_ptr<LayerNorm> norm_;
  std::vector<EncoderLayer> layers_;
};

}  // namespace

std::shared_ptr<Model> make_minilm(const Blueprint& blueprint) {
  return std::make_shared<MiniLm>(blueprint);
}

NamedTensors translate_minilm(NamedTensors weights) {
  for (auto& weight : weights)
    for (const std::string prefix : {"bert.", "0.auto_model."})
      if (weight.name.starts_with(prefix)) weight.name.erase(0, prefix.size());
  std::erase_if(weights,
                [](const auto& w) { return w.name == "embeddings.position_ids" || w.name.starts_with("pooler."); });
  return weights;
}

}  // namespace sotto::models
