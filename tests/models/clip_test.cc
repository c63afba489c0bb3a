#include "../data/make_files.h"
#include "../support/expect_user_error.h"
#include "../support/temp_folder.h"
#include "base/files.h"
#include "base/random.h"
#include "io/safetensors.h"
#include "models/features.h"
#include "models/vision_language/clip_model.h"
#include "models/vision_language/clip_network.h"
#include "models/weights/weights.h"
#include "temp_home.h"
#include "tiny_clip.h"

#include <ATen/ATen.h>
#include <torch/csrc/jit/api/module.h>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace sotto::models {
namespace {

using test::TempFolder;

ClipShape small_vit() {
  ClipShape shape;
  shape.image_size = 16;
  return shape;
}

ClipShape small_resnet() {
  ClipShape shape;
  shape.image_size = 64;
  shape.vision_width = 8;
  shape.vision_layers = 2;
  shape.stages = {1, 2, 1, 1};
  return shape;
}

Clip make(const ClipShape& shape, uint64_t seed = 1) {
  RandomStream stream(seed, "clip-test");
  return Clip(shape, stream.torch_generator());
}

at::Tensor noise(at::IntArrayRef shape) {
  RandomStream stream(2, "clip-test");
  return at::empty(shape).normal_(0.0, 1.0, stream.torch_generator());
}

// A TorchScript module whose tensors have these dotted names.
void save_script(const fs::path& path, const NamedTensors& tensors) {
  std::map<std::string, torch::jit::Module> modules;
  modules.emplace("", torch::jit::Module("Clip"));
  std::vector<std::string> made;
  const auto parent_of = [](const std::string& name) {
    const size_t dot = name.rfind('.');
    return dot == name.npos ? std::string() : name.substr(0, dot);
  };
  const std::function<void(const std::string&)> make_module = [&](const std::string& name) {
    if (modules.contains(name)) return;
    make_module(parent_of(name));
    modules.emplace(name, torch::jit::Module(fmt::format("M{}", modules.size())));
    made.push_back(name);
  };
  for (const auto& [name, value] : tensors) {
    make_module(parent_of(name));
    modules.at(parent_of(name)).register_parameter(name.substr(name.rfind('.') + 1), value, false);
  }
  for (const std::string& name : made)
    modules.at(parent_of(name)).register_module(name.substr(name.rfind('.') + 1), modules.at(name));
  modules.at("").register_buffer("input_resolution", at::scalar_tensor(16, at::kLong));
  modules.at("").register_buffer("vocab_size", at::scalar_tensor(514, at::kLong));
  modules.at("").save(path.string());
}

void expect_same(const Clip& a, const Clip& b, double tolerance) {
  ASSERT_EQ(a.weights().size(), b.weights().size());
  EXPECT_EQ(a.shape(), b.shape());
  for (const auto& [name, value] : a.weights())
    EXPECT_TRUE(at::allclose(find_tensor(b.weights(), name), value, tolerance, tolerance)) << name;
  const at::Tensor images = noise({2, 3, a.shape().image_size, a.shape().image_size});
  const at::Tensor expected = a.image_features(images);
  EXPECT_LE(((b.image_features(images) - expected).norm() / expected.norm()).item<double>(), 50 * tolerance + 1e-6);
}

TEST(Clip, EveryArchiveGivesTheSameModel) {
  const TempFolder folder;
  for (const ClipShape& shape : {small_vit(), small_resnet()}) {
    SCOPED_TRACE(shape.resnet() ? "ResNet" : "ViT");
    const Clip clip = make(shape);
    NamedTensors half;
    for (const auto& [name, value] : clip.weights()) half.push_back({name, value.to(at::kHalf)});
    write_state_dict(folder / "full.pt", clip.weights());
    write_state_dict(folder / "half.pt", half);
    io::write_safetensors(folder / "full.safetensors", {.tensors = clip.weights(), .metadata = {}});
    save_script(folder / "script.pt", clip.weights());
    expect_same(clip, *Clip::load(folder / "full.pt"), 0);
    expect_same(clip, *Clip::load(folder / "full.safetensors"), 0);
    expect_same(clip, *Clip::load(folder / "script.pt"), 0);
    expect_same(clip, *Clip::load(folder / "half.pt"), 1e-3);
  }
}

TEST(Clip, NamesAreTheReferences) {
  const auto has = [](const Clip& clip, const std::string& name, std::vector<int64_t> shape) {
    const at::Tensor found = find_tensor(clip.weights(), name);
    EXPECT_TRUE(found.defined() && found.sizes() == at::IntArrayRef(shape)) << name;
  };
  const Clip vit = make(small_vit());
  has(vit, "visual.class_embedding", {32});
  has(vit, "visual.positional_embedding", {5, 32});
  has(vit, "visual.proj", {32, 32});
  has(vit, "visual.conv1.weight", {32, 3, 8, 8});
  has(vit, "visual.ln_pre.weight", {32});
  has(vit, "visual.transformer.resblocks.1.attn.in_proj_weight", {96, 32});
  has(vit, "visual.transformer.resblocks.0.attn.out_proj.bias", {32});
  has(vit, "transformer.resblocks.1.mlp.c_fc.weight", {128, 32});
  has(vit, "transformer.resblocks.0.ln_2.bias", {32});
  has(vit, "token_embedding.weight", {514, 32});
  has(vit, "positional_embedding", {77, 32});
  has(vit, "text_projection", {32, 32});
  has(vit, "logit_scale", {});
  const Clip resnet = make(small_resnet());
  has(resnet, "visual.conv3.weight", {8, 4, 3, 3});
  has(resnet, "visual.bn1.running_var", {4});
  has(resnet, "visual.layer2.1.conv2.weight", {16, 16, 3, 3});
  has(resnet, "visual.layer4.0.downsample.1.running_mean", {256});
  has(resnet, "visual.attnpool.positional_embedding", {5, 256});
  has(resnet, "visual.attnpool.c_proj.weight", {32, 256});
  EXPECT_FALSE(find_tensor(resnet.weights(), "visual.layer2.1.downsample.0.weight").defined());
}

TEST(Clip, WhatDoesNotFitIsNamed) {
  const TempFolder folder;
  NamedTensors weights = clone(make(small_vit()).weights());
  std::erase_if(weights, [](const auto& w) { return w.name == "ln_final.bias"; });
  for (auto& [name, value] : weights)
    if (name == "visual.ln_post.weight") value = at::ones({31});
  weights.push_back({"adapter.weight", at::ones({2})});
  write_state_dict(folder / "odd.pt", weights);
  try {
    Clip::load(folder / "odd.pt");
    FAIL();
  } catch (const UserError& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("missing: ln_final.bias"));
    EXPECT_THAT(error.what(), ::testing::HasSubstr("not in the model: adapter.weight"));
    EXPECT_THAT(error.what(), ::testing::HasSubstr("visual.ln_post.weight [31] instead of [32]"));
  }
  write_state_dict(folder / "other.pt", {{"fc.weight", at::ones({2, 2})}});
  EXPECT_USER_ERROR(Clip::load(folder / "other.pt"), "not a CLIP model");
  EXPECT_USER_ERROR(open_vision_language((folder / "none.pt").string(), 32), "neither a file");
}

TEST(Clip, AVocabularyWithMergesNeedsItsFile) {
  const TempFolder folder;
  ClipShape shape = small_vit();
  shape.vocabulary = 515;
  write_state_dict(folder / "clip.pt", make(shape).weights());
  EXPECT_USER_ERROR(open_clip_model(folder / "clip.pt"), "bpe_simple_vocab_16e6.txt.gz");
  test::write_bytes(folder / "bpe_simple_vocab_16e6.txt.gz", test::gzipped("#version: 0.2\na b\n"));
  EXPECT_EQ(open_clip_model(folder / "clip.pt")->tokens("ab", 77).size(), 4U);
}

// The text tower of one layer, written out.
TEST(Clip, TextFeaturesByHand) {
  ClipShape shape = small_vit();
  shape.text_layers = 1;
  shape.text_width = 6;
  const Clip clip = make(shape);
  const auto w = [&](const std::string& name) { return find_tensor(clip.weights(), name); };
  const auto norm = [&](const at::Tensor& x, const std::string& name) {
    const at::Tensor centred = x - x.mean(-1, true);
    return centred / (centred.square().mean(-1, true) + 1e-5).sqrt() * w(name + ".weight") + w(name + ".bias");
  };
  const at::Tensor vectors = noise({1, 4, 6});
  at::Tensor x = vectors[0] + w("positional_embedding").narrow(0, 0, 4);
  const std::string block = "transformer.resblocks.0.";
  const at::Tensor qkv =
      at::matmul(norm(x, block + "ln_1"), w(block + "attn.in_proj_weight").t()) + w(block + "attn.in_proj_bias");
  at::Tensor seen = at::zeros({4, 6});
  for (int64_t i = 0; i < 4; ++i) {
    at::Tensor scores = at::zeros({i + 1});
    for (int64_t j = 0; j <= i; ++j)
      scores[j] = (qkv[i].narrow(0, 0, 6) * qkv[j].narrow(0, 6, 6)).sum() / std::sqrt(6.0);
    const at::Tensor weights = scores.softmax(0);
    for (int64_t j = 0; j <= i; ++j) seen[i] += weights[j] * qkv[j].narrow(0, 12, 6);
  }
  x = x + at::matmul(seen, w(block + "attn.out_proj.weight").t()) + w(block + "attn.out_proj.bias");
  at::Tensor inner = at::matmul(norm(x, block + "ln_2"), w(block + "mlp.c_fc.weight").t()) + w(block + "mlp.c_fc.bias");
  inner = inner / (1 + (-1.702 * inner).exp());
  x = x + at::matmul(inner, w(block + "mlp.c_proj.weight").t()) + w(block + "mlp.c_proj.bias");
  const at::Tensor expected = at::matmul(norm(x[3], "ln_final"), w("text_projection"));
  EXPECT_TRUE(at::allclose(clip.text_features(vectors, at::tensor({4}, at::kLong))[0], expected, 1e-4, 1e-5));
}

TEST(Clip, WhatStandsBehindTheEndDoesNotCount) {
  const Clip clip = make(small_vit());
  const at::Tensor vectors = noise({3, 9, 32});
  const at::Tensor lengths = at::tensor({4, 9, 6}, at::kLong);
  const at::Tensor features = clip.text_features(vectors, lengths);
  for (int64_t i = 0; i < 3; ++i) {
    const int64_t length = lengths[i].item<int64_t>();
    const at::Tensor alone = clip.text_features(vectors[i].narrow(0, 0, length).unsqueeze(0), lengths.narrow(0, i, 1));
    EXPECT_TRUE(at::allclose(alone[0], features[i], 1e-4, 1e-5));
  }
}

TEST(Clip, PixelsOfOddSizesAndModes) {
  const auto model = tiny_clip_model(32);
  const std::vector<uint8_t> grey_alpha(2 * 7 * 30, 128);
  const std::vector<std::string> images = {
      test::plain_png(1, 1, {200, 10, 30}),
      test::plain_png(33, 7, {90}),
      test::png_bytes(7, 30, 2, grey_alpha),
      test::png16_bytes(5, 9, std::vector<uint16_t>(45, 40000)),
      test::palette_png_bytes(2, 3, {0, 1, 0, 1, 1, 0}, {{255, 0, 0}, {0, 0, 255}}),
      test::jpeg_bytes(640, 41, {10, 200, 90}),
      test::jpeg_bytes(31, 33, {77}),
      test::jpeg_bytes(40, 20, {10, 20, 30, 40}),
  };
  for (size_t i = 0; i < images.size(); ++i) {
    const at::Tensor features = model->encode_image(images[i], fmt::format("image {}", i));
    EXPECT_EQ(features.sizes(), at::IntArrayRef({1, 17, 32}));
    EXPECT_TRUE(at::isfinite(features).all().item<bool>()) << i;
    EXPECT_NEAR(features[0][0].norm().item<double>(), 1.0, 1e-5);
  }
  EXPECT_USER_ERROR(model->encode_image("GIF89a", "x.gif"), "x.gif");
  EXPECT_USER_ERROR(model->encode_image(images[0].substr(0, 40), "cut.png"), "cut.png");
}

TEST(Clip, PixelsKeepProportionsAndTheMiddle) {
  // Left third red, middle green, right blue: of a wide image the middle is left.
  at::Tensor image = at::zeros({3, 20, 60}, at::kByte);
  for (int64_t c = 0; c < 3; ++c) image[c].narrow(1, 20 * c, 20).fill_(255);
  const at::Tensor pixels = clip_pixels(image, 10);
  EXPECT_EQ(pixels.sizes(), at::IntArrayRef({1, 3, 10, 10}));
  const at::Tensor centre = pixels[0].select(1, 5).select(1, 5);
  EXPECT_NEAR(centre[1].item<double>(), (1 - 0.4578275) / 0.26130258, 1e-4);
  EXPECT_NEAR(centre[0].item<double>(), -0.48145466 / 0.26862954, 1e-4);
  // Of the right size already: only the scale changes.
  const at::Tensor bytes = at::arange(300, at::kLong).remainder(256).to(at::kByte).view({3, 10, 10});
  const at::Tensor batch = bytes.to(at::kFloat).unsqueeze(0) / 127.5 - 1.0;
  EXPECT_TRUE(at::allclose(clip_pixels(bytes, 10), clip_pixels_of_batch(batch), 1e-4, 1e-4));
}

TEST(Clip, ImageFeaturesAreCachedByFile) {
  const TempHome home;
  for (const ClipShape& shape : {small_vit(), small_resnet()}) {
    const fs::path file = home / "clip.pt";
    write_state_dict(file, make(shape).weights());
    data::DataOptions options = write_dataset(home / "shades.safetensors", dark_and_bright(12, 4));
    options.features = file.string();
    const Features first = load_features(options, 1), again = load_features(options, 1);
    EXPECT_FALSE(first.was_cached);
    EXPECT_TRUE(again.was_cached);
    EXPECT_EQ(first.dataset.record_shape(), (std::vector<int64_t>{32}));
    EXPECT_TRUE(first.dataset.train.x.equal(again.dataset.train.x));
    options.features += "+patches";
    const Features patches = load_features(options, 1);
    EXPECT_EQ(patches.dataset.record_shape(), (std::vector<int64_t>{5 * 32}));
    const auto model = open_clip_model(file);
    EXPECT_TRUE(at::allclose(model->image_features(patches.dataset.train.x).select(1, 0),
                             model->image_features(first.dataset.train.x).select(1, 0), 1e-4, 1e-5));
  }
}

TEST(Clip, ATrainedOneKnowsPicturesByName) {
  const TempFolder folder;
  write_state_dict(folder / "colours.pt", train_tiny_clip()->weights());
  const auto model = open_vision_language((folder / "colours.pt").string(), 32);
  const PromptedClasses classes(model, kColourNames, 4);
  const auto backbone = make_clip_backbone(folder / "colours.pt", false);
  const at::NoGradGuard no_grad;
  const at::Tensor images = model->image_features(backbone->features(as_batch(colour_pictures(60, 1)))).select(1, 0);
  const at::Tensor right =
      at::matmul(images, classes.zero_shot().t()).argmax(1).eq(at::arange(60, at::kLong).remainder(3));
  EXPECT_GT(right.to(at::kDouble).mean().item<double>(), 0.9);
}

TEST(PromptedClasses, OddNamesFit) {
  const auto model = tiny_clip_model(32);
  const std::vector<std::string> names = {"mug", "Äpfel_und_Birnen 🍎",  "日本語",
                                          "",    std::string(500, 'x'), std::string(500, 'x') + "y"};
  const PromptedClasses classes(model, names, 16);
  const at::Tensor prompts = noise({2, 16, 32});
  const at::Tensor features = classes.text_features(prompts);
  EXPECT_EQ(features.sizes(), at::IntArrayRef({2, 6, 32}));
  EXPECT_TRUE(at::isfinite(features).all().item<bool>());
  EXPECT_TRUE(at::allclose(features.norm(2, 2), at::ones({2, 6}), 1e-4, 1e-4));
  // Alone or among others, a class has the same features; names that differ behind what fits are one.
  const PromptedClasses alone(model, {names[1]}, 16);
  EXPECT_TRUE(at::allclose(alone.text_features(prompts)[0][0], features[0][1], 1e-4, 1e-5));
  EXPECT_TRUE(at::allclose(features[0][4], features[0][5]));
  EXPECT_EQ(PromptedClasses(model, names, 3).photo_prompt().size(0), 3);
  EXPECT_USER_ERROR(PromptedClasses(model, names, 75), "no room");
}

TEST(PromptedClasses, WordsAsAPromptAreTheWords) {
  const auto model = tiny_clip_model(32);
  const int64_t words = static_cast<int64_t>(model->tokens("a photo of a", 77).size()) - 2;
  const PromptedClasses classes(model, {"mug", "back_pack"}, words);
  EXPECT_TRUE(
      at::allclose(classes.text_features(classes.photo_prompt().unsqueeze(0))[0], classes.zero_shot(), 1e-4, 1e-5));
}

}  // namespace
}  // namespace sotto::models
