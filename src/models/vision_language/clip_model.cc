#include "models/vision_language/clip_model.h"

#include "base/error.h"
#include "base/files.h"
#include "io/images/jpeg.h"
#include "io/images/png.h"
#include "models/text/byte_pair.h"

#include <ATen/ATen.h>

namespace sotto::models {
namespace {

constexpr int64_t kColours = 3;

BytePair tokenizer_beside(const fs::path& path, int64_t vocabulary) {
  if (vocabulary == BytePair().vocabulary()) return {};
  for (const char* name : {"bpe_simple_vocab_16e6.txt.gz", "bpe_simple_vocab_16e6.txt"}) {
    const fs::path file = path.parent_path() / name;
    if (fs::exists(file)) return BytePair::open(file, vocabulary);
  }
  fail_user("{}: its tokenizer is missing; put bpe_simple_vocab_16e6.txt.gz beside it", path.string());
}

at::Tensor decode_colours(const std::string& bytes, const std::string& where) {
  if (!io::is_png(bytes) && !io::is_jpeg(bytes)) fail_user("{}: neither a PNG nor a JPEG image", where);
  const io::Image image =
      io::is_png(bytes) ? io::decode_png(bytes, kColours, where) : io::decode_jpeg(bytes, kColours, 0, where);
  const at::Tensor pixels =
      at::from_blob(const_cast<uint8_t*>(image.pixels.data()), {image.height, image.width, kColours}, at::kByte);
  return pixels.permute({2, 0, 1}).clone();
}

class ClipModel : public VisionLanguage {
 public:
  ClipModel(std::shared_ptr<Clip> clip, BytePair tokenizer)
      : clip_(std::move(clip)), tokenizer_(std::move(tokenizer)) {}

  int64_t word_width() const override { return clip_->shape().text_width; }
  int64_t feature_width() const override { return clip_->shape().features; }
  int64_t longest_text() const override { return clip_->shape().context; }
  double temperature() const override { return clip_->temperature(); }

  std::vector<int64_t> tokens(const std::string& text, int64_t longest) const override {
    return tokenizer_.encode(text, longest);
  }
  at::Tensor word_vectors(const std::vector<int64_t>& tokens) const override {
    return clip_->word_vectors(at::tensor(tokens, at::kLong));
  }
  at::Tensor text_features(const at::Tensor& vectors, const at::Tensor& lengths) const override {
    return scaled(clip_->text_features(vectors, lengths));
  }
  at::Tensor image_features(const at::Tensor& records) const override {
    if (records.dim() != 2 || records.size(1) % feature_width() != 0) {
      fail_user(
          "records of shape [{}] are not features of this encoder, which are {} numbers: name its file in "
          "data.features",
          fmt::join(records.sizes().slice(1), "×"), feature_width());
    }
    return scaled(records.view({records.size(0), -1, feature_width()}));
  }
  at::Tensor encode_image(const std::string& bytes, const std::string& where) const override {
    const at::NoGradGuard no_grad;
    return scaled(clip_->image_features(clip_pixels(decode_colours(bytes, where), clip_->shape().image_size)));
  }

 private:
  static at::Tensor scaled(const at::Tensor& features) {
    return features / features.norm(2, -1, true).clamp_min(1e-12);
  }

  std::shared_ptr<const Clip> clip_;
  BytePair tokenizer_;
};

class ClipBackbone : public Model {
 public:
  ClipBackbone(std::shared_ptr<const Clip> clip, bool patches) : clip_(std::move(clip)), patches_(patches) {}

  at::Tensor features(const at::Tensor& x) override {
    const at::Tensor all = clip_->image_features(clip_pixels_of_batch(x));
    return patches_ ? all.flatten(1) : all.select(1, 0).contiguous();
  }
  at::Tensor classify(const at::Tensor&) override { fail_user("CLIP has no classifier of its own"); }
  int64_t feature_width() const override {
    const ClipShape& shape = clip_->shape();
    const int64_t side = shape.image_size / (shape.resnet() ? 32 : shape.patch);
    return shape.features * (patches_ ? side * side + 1 : 1);
  }
  std::string head_name() const override { return "head"; }

 private:
  std::shared_ptr<const Clip> clip_;
  bool patches_;
};

}  // namespace

std::shared_ptr<const VisionLanguage> open_clip_model(const fs::path& path) {
  auto clip = Clip::load(path);
  BytePair tokenizer = tokenizer_beside(path, clip->shape().vocabulary);
  return std::make_shared<ClipModel>(std::move(clip), std::move(tokenizer));
}

std::shared_ptr<const VisionLanguage> tiny_clip_model(int64_t record_width) {
  RandomStream init(0, "tiny-text-tower");
  ClipShape shape;
  shape.features = record_width;
  return std::make_shared<ClipModel>(std::make_shared<Clip>(shape, init.torch_generator()), BytePair());
}

std::shared_ptr<Model> make_clip_backbone(const fs::path& path, bool patches) {
  return std::make_shared<ClipBackbone>(Clip::load(path), patches);
}

}  // namespace sotto::models
