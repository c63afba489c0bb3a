#include "models/vision_language/clip_network.h"

#include "base/error.h"
#include "models/layers.h"
#include "models/weights/weights.h"

#include <ATen/ATen.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace sotto::models {
namespace {

constexpr double kEps = 1e-5;
constexpr int64_t kHeadWidth = 64;
constexpr int64_t kExpansion = 4;  // of a bottleneck
constexpr double kHidden = -1e9;
constexpr double kFirstTemperature = 0.07;

int64_t heads_of(int64_t width) {
  return std::max<int64_t>(1, width / kHeadWidth);
}

at::Tensor quick_gelu(const at::Tensor& x) {
  return x * at::sigmoid(1.702 * x);
}

at::Tensor required(const NamedTensors& weights, const std::string& name, int64_t dimensions,
                    const std::string& where) {
  const at::Tensor found = find_tensor(weights, name);
  if (!found.defined()) fail_user("{}: not a CLIP model; it has no tensor '{}'", where, name);
  if (found.dim() != dimensions)
    fail_user("{}: not a CLIP model; its tensor '{}' has {} dimensions instead of {}", where, name, found.dim(),
              dimensions);
  return found;
}

// How many numbers follow the prefix: "prefix0.", "prefix1.", …
int64_t count_of(const NamedTensors& weights, const std::string& prefix) {
  int64_t count = 0;
  const auto has = [&](const std::string& start) {
    return std::any_of(weights.begin(), weights.end(), [&](const auto& w) { return w.name.starts_with(start); });
  };
  while (has(fmt::format("{}{}.", prefix, count))) ++count;
  return count;
}

ClipShape shape_of(const NamedTensors& weights, const std::string& where) {
  ClipShape shape;
  const auto square_side = [&](int64_t positions) {
    return static_cast<int64_t>(std::lround(std::sqrt(static_cast<double>(positions - 1))));
  };
  if (find_tensor(weights, "visual.proj").defined()) {
    const at::Tensor patches = required(weights, "visual.conv1.weight", 4, where);
    shape.vision_width = patches.size(0);
    shape.patch = patches.size(3);
    shape.vision_layers = count_of(weights, "visual.transformer.resblocks.");
    shape.image_size = shape.patch * square_side(required(weights, "visual.positional_embedding", 2, where).size(0));
  } else {
    shape.vision_width = required(weights, "visual.layer1.0.conv1.weight", 4, where).size(0);
    for (size_t i = 0; i < shape.stages.size(); ++i)
      shape.stages[i] = count_of(weights, fmt::format("visual.layer{}.", i + 1));
    shape.image_size = 32 * square_side(required(weights, "visual.attnpool.positional_embedding", 2, where).size(0));
  }
  shape.features = required(weights, "text_projection", 2, where).size(1);
  shape.context = required(weights, "positional_embedding", 2, where).size(0);
  const at::Tensor words = required(weights, "token_embedding.weight", 2, where);
  shape.vocabulary = words.size(0);
  shape.text_width = words.size(1);
  shape.text_layers = count_of(weights, "transformer.resblocks.");
  return shape;
}

// Facts that archives carry beside the weights.
bool is_fact(const std::string& name) {
  return name == "input_resolution" || name == "context_length" || name == "vocab_size" ||
         name.ends_with("num_batches_tracked");
}

}  // namespace

Clip::Clip(const ClipShape& shape, at::Generator init) : shape_(shape), init_(std::move(init)) {
  const auto root = [](int64_t n) { return std::pow(static_cast<double>(n), -0.5); };
  if (shape.resnet()) {
    add_resnet();
  } else {
    add_vit();
  }
  add_normal("positional_embedding", {shape.context, shape.text_width}, 0.01);
  add_normal("text_projection", {shape.text_width, shape.features}, root(shape.text_width));
  add("logit_scale", at::scalar_tensor(std::log(1 / kFirstTemperature)));
  add_blocks("transformer.resblocks.", shape.text_width, shape.text_layers);
  add_normal("token_embedding.weight", {shape.vocabulary, shape.text_width}, 0.02);
  add_norm("ln_final", shape.text_width);
  init_ = {};
}

std::shared_ptr<Clip> Clip::load(const std::filesystem::path& path) {
  NamedTensors read = read_weights(path);
  std::erase_if(read, [](const auto& w) { return is_fact(w.name); });
  const std::string where = path.string();
  auto clip = std::make_shared<Clip>(shape_of(read, where), at::Generator());
  assign_weights(clip->weights_, read, where);
  return clip;
}

void Clip::add(const std::string& name, at::Tensor value) {
  by_name_.emplace(name, value);
  weights_.push_back({name, std::move(value)});
}

void Clip::add_normal(const std::string& name, at::IntArrayRef shape, double stddev) {
  at::Tensor value = at::empty(shape);
  add(name, init_.defined() ? value.normal_(0.0, stddev, init_) : value);
}

void Clip::add_norm(const std::string& name, int64_t width) {
  add(name + ".weight", at::ones({width}));
  add(name + ".bias", at::zeros({width}));
}

void Clip::add_linear(const std::string& name, int64_t in, int64_t out) {
  add_normal(name + ".weight", {out, in}, std::pow(static_cast<double>(in), -0.5));
  add(name + ".bias", at::zeros({out}));
}

void Clip::add_conv_norm(const std::string& name, const std::string& norm, int64_t in, int64_t out, int64_t kernel) {
  add_normal(name + ".weight", {out, in, kernel, kernel}, std::sqrt(2.0 / static_cast<double>(in * kernel * kernel)));
  add_norm(norm, out);
  add(norm + ".running_mean", at::zeros({out}));
  add(norm + ".running_var", at::ones({out}));
}

void Clip::add_blocks(const std::string& prefix, int64_t width, int64_t layers) {
  const double stddev = std::pow(static_cast<double>(width), -0.5);
  for (int64_t i = 0; i < layers; ++i) {
    const std::string name = fmt::format("{}{}.", prefix, i);
    add_normal(name + "attn.in_proj_weight", {3 * width, width}, stddev);
    add(name + "attn.in_proj_bias", at::zeros({3 * width}));
    add_linear(name + "attn.out_proj", width, width);
    add_norm(name + "ln_1", width);
    add_linear(name + "mlp.c_fc", width, 4 * width);
    add_linear(name + "mlp.c_proj", 4 * width, width);
    add_norm(name + "ln_2", width);
  }
}

void Clip::add_vit() {
  const int64_t width = shape_.vision_width, side = shape_.image_size / shape_.patch;
  const double stddev = std::pow(static_cast<double>(width), -0.5);
  add_normal("visual.class_embedding", {width}, stddev);
  add_normal("visual.positional_embedding", {side * side + 1, width}, stddev);
  add_normal("visual.proj", {width, shape_.features}, stddev);
  add_normal("visual.conv1.weight", {width, 3, shape_.patch, shape_.patch},
             std::pow(static_cast<double>(3 * shape_.patch * shape_.patch), -0.5));
  add_norm("visual.ln_pre", width);
  add_blocks("visual.transformer.resblocks.", width, shape_.vision_layers);
  add_norm("visual.ln_post", width);
}

void Clip::add_resnet() {
  const int64_t width = shape_.vision_width;
  add_conv_norm("visual.conv1", "visual.bn1", 3, width / 2, 3);
  add_conv_norm("visual.conv2", "visual.bn2", width / 2, width / 2, 3);
  add_conv_norm("visual.conv3", "visual.bn3", width / 2, width, 3);
  int64_t channels = width;
  for (int64_t stage = 0; stage < 4; ++stage) {
    const int64_t inner = width << stage;
    for (int64_t i = 0; i < shape_.stages[static_cast<size_t>(stage)]; ++i) {
      const std::string name = fmt::format("visual.layer{}.{}.", stage + 1, i);
      add_conv_norm(name + "conv1", name + "bn1", channels, inner, 1);
      add_conv_norm(name + "conv2", name + "bn2", inner, inner, 3);
      add_conv_norm(name + "conv3", name + "bn3", inner, inner * kExpansion, 1);
      if (i == 0) add_conv_norm(name + "downsample.0", name + "downsample.1", channels, inner * kExpansion, 1);
      channels = inner * kExpansion;
    }
  }
  const int64_t side = shape_.image_size / 32;
  add_normal("visual.attnpool.positional_embedding", {side * side + 1, channels},
             std::pow(static_cast<double>(channels), -0.5));
  for (const char* name : {"k_proj", "q_proj", "v_proj"})
    add_linear(fmt::format("visual.attnpool.{}", name), channels, channels);
  add_linear("visual.attnpool.c_proj", channels, shape_.features);
}

const at::Tensor& Clip::at_name(const std::string& name) const {
  return by_name_.at(name);
}

at::Tensor Clip::linear(const std::string& name, const at::Tensor& x) const {
  return at::linear(x, at_name(name + ".weight"), at_name(name + ".bias"));
}

at::Tensor Clip::layer_norm(const std::string& name, const at::Tensor& x) const {
  const at::Tensor& weight = at_name(name + ".weight");
  return at::layer_norm(x, weight.sizes(), weight, at_name(name + ".bias"), kEps);
}

at::Tensor Clip::conv_norm(const std::string& name, const std::string& norm, const at::Tensor& x, int64_t stride,
                           int64_t padding) const {
  const at::Tensor y = at::conv2d(x, at_name(name + ".weight"), {}, {stride, stride}, {padding, padding});
  return at::batch_norm(y, at_name(norm + ".weight"), at_name(norm + ".bias"), at_name(norm + ".running_mean"),
                        at_name(norm + ".running_var"), false, 0.1, kEps, false);
}

at::Tensor Clip::blocks(const std::string& prefix, int64_t width, int64_t layers, at::Tensor x,
                        const at::Tensor& mask) const {
  for (int64_t i = 0; i < layers; ++i) {
    const std::string name = fmt::format("{}{}.", prefix, i);
    const at::Tensor qkv = at::linear(layer_norm(name + "ln_1", x), at_name(name + "attn.in_proj_weight"),
                                      at_name(name + "attn.in_proj_bias"));
    const auto parts = qkv.chunk(3, -1);
    x = x + linear(name + "attn.out_proj", attend(parts[0], parts[1], parts[2], heads_of(width), mask));
    x = x + linear(name + "mlp.c_proj", quick_gelu(linear(name + "mlp.c_fc", layer_norm(name + "ln_2", x))));
  }
  return x;
}

at::Tensor Clip::vit(const at::Tensor& pixels) const {
  const int64_t patch = shape_.patch;
  const at::Tensor patches =
      at::conv2d(pixels, at_name("visual.conv1.weight"), {}, {patch, patch}).flatten(2).transpose(1, 2);
  const at::Tensor whole = at_name("visual.class_embedding").expand({pixels.size(0), 1, shape_.vision_width});
  at::Tensor x = at::cat({whole, patches}, 1) + at_name("visual.positional_embedding");
  x = blocks("visual.transformer.resblocks.", shape_.vision_width, shape_.vision_layers, layer_norm("visual.ln_pre", x),
             {});
  return at::matmul(layer_norm("visual.ln_post", x), at_name("visual.proj"));
}

at::Tensor Clip::resnet_block(const std::string& name, const at::Tensor& x, int64_t stride) const {
  const auto pooled = [&](const at::Tensor& y) { return stride > 1 ? at::avg_pool2d(y, {stride, stride}) : y; };
  at::Tensor y = at::relu(conv_norm(name + "conv1", name + "bn1", x, 1, 0));
  y = pooled(at::relu(conv_norm(name + "conv2", name + "bn2", y, 1, 1)));
  y = conv_norm(name + "conv3", name + "bn3", y, 1, 0);
  const bool shortcut = by_name_.contains(name + "downsample.0.weight");
  return at::relu(y + (shortcut ? conv_norm(name + "downsample.0", name + "downsample.1", pooled(x), 1, 0) : x));
}

// Every place asks, not the mean alone: the others' answers are the patches' features.
at::Tensor Clip::attention_pool(const at::Tensor& x) const {
  const at::Tensor places = x.flatten(2).transpose(1, 2);
  const at::Tensor all = at::cat({places.mean(1, true), places}, 1) + at_name("visual.attnpool.positional_embedding");
  const std::string name = "visual.attnpool.";
  const at::Tensor seen = attend(linear(name + "q_proj", all), linear(name + "k_proj", all),
                                 linear(name + "v_proj", all), heads_of(all.size(2)));
  return linear(name + "c_proj", seen);
}

at::Tensor Clip::resnet(const at::Tensor& pixels) const {
  at::Tensor x = at::relu(conv_norm("visual.conv1", "visual.bn1", pixels, 2, 1));
  x = at::relu(conv_norm("visual.conv2", "visual.bn2", x, 1, 1));
  x = at::avg_pool2d(at::relu(conv_norm("visual.conv3", "visual.bn3", x, 1, 1)), {2, 2});
  for (int64_t stage = 0; stage < 4; ++stage)
    for (int64_t i = 0; i < shape_.stages[static_cast<size_t>(stage)]; ++i)
      x = resnet_block(fmt::format("visual.layer{}.{}.", stage + 1, i), x, stage > 0 && i == 0 ? 2 : 1);
  return attention_pool(x);
}

at::Tensor Clip::image_features(const at::Tensor& pixels) const {
  return shape_.resnet() ? resnet(pixels) : vit(pixels);
}

at::Tensor Clip::text_features(const at::Tensor& vectors, const at::Tensor& lengths) const {
  const int64_t length = vectors.size(1);
  const at::Tensor later = at::full({length, length}, kHidden).triu_(1);
  const at::Tensor x = blocks("transformer.resblocks.", shape_.text_width, shape_.text_layers,
                              vectors + at_name("positional_embedding").narrow(0, 0, length), later);
  const at::Tensor ends = (lengths - 1).view({-1, 1, 1}).expand({-1, 1, x.size(2)});
  return at::matmul(layer_norm("ln_final", x.gather(1, ends).squeeze(1)), at_name("text_projection"));
}

double Clip::temperature() const {
  return std::exp(-at_name("logit_scale").item<double>());
}

namespace {

at::Tensor normalised(const at::Tensor& unit) {
  const at::Tensor mean = at::tensor({0.48145466f, 0.4578275f, 0.40821073f}).view({1, 3, 1, 1});
  const at::Tensor stddev = at::tensor({0.26862954f, 0.26130258f, 0.27577711f}).view({1, 3, 1, 1});
  return (unit - mean) / stddev;
}

}  // namespace

at::Tensor clip_pixels(const at::Tensor& image, int64_t size) {
  const int64_t height = image.size(1), width = image.size(2), shorter = std::min(height, width);
  const auto scaled = [&](int64_t side) { return std::max(size, side * size / shorter); };
  const at::Tensor resized =
      at::_upsample_bicubic2d_aa(image.unsqueeze(0).to(at::kFloat), {scaled(height), scaled(width)}, false)
          .round()
          .clamp(0, 255);
  const auto middle = [&](int64_t side) {
    return static_cast<int64_t>(std::lrint(static_cast<double>(side - size) / 2));
  };
  const at::Tensor cut = resized.narrow(2, middle(resized.size(2)), size).narrow(3, middle(resized.size(3)), size);
  return normalised(cut / 255.0);
}

at::Tensor clip_pixels_of_batch(const at::Tensor& x) {
  return normalised(((x.size(1) == 1 ? x.expand({-1, 3, -1, -1}) : x) + 1.0) / 2.0);
}

}  // namespace sotto::models
