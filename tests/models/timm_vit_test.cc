// ViTs from timm's files: the real one where it is, and a small one that is made here.
#include "models/fixed/timm_vit.h"

#include "../support/expect_user_error.h"
#include "io/safetensors.h"
#include "models/weights/weight_store.h"
#include "temp_home.h"

#include <ATen/ATen.h>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace sotto::models {
namespace {

constexpr int64_t kWidth = 64, kPatch = 4, kSide = 2;

// One block, 8×8 pixels; everything zero but what is set.
NamedTensors small_weights() {
  NamedTensors weights = {{"cls_token", at::zeros({1, 1, kWidth})},
                          {"pos_embed", at::zeros({1, kSide * kSide + 1, kWidth})},
                          {"patch_embed.proj.weight", at::zeros({kWidth, 3, kPatch, kPatch})},
                          {"patch_embed.proj.bias", at::zeros({kWidth})},
                          {"norm.weight", at::ones({kWidth})},
                          {"norm.bias", at::zeros({kWidth})}};
  const auto add = [&](const char* name, std::vector<int64_t> shape) {
    weights.push_back({fmt::format("blocks.0.{}", name), at::zeros(shape)});
  };
  for (const char* name : {"norm1.weight", "norm1.bias", "norm2.weight", "norm2.bias", "attn.proj.bias"})
    add(name, {kWidth});
  add("attn.qkv.weight", {3 * kWidth, kWidth});
  add("attn.qkv.bias", {3 * kWidth});
  add("attn.proj.weight", {kWidth, kWidth});
  add("mlp.fc1.weight", {128, kWidth});
  add("mlp.fc1.bias", {128});
  add("mlp.fc2.weight", {kWidth, 128});
  add("mlp.fc2.bias", {kWidth});
  return weights;
}

void set(NamedTensors& weights, const std::string& name, const at::Tensor& value) {
  find_tensor(weights, name).copy_(value);
}

class SmallVit : public ::testing::Test {
 protected:
  std::filesystem::path write(const NamedTensors& weights) const {
    std::filesystem::create_directories(home_ / "weights");
    io::write_safetensors(home_ / "weights/vit-small-patch4-8.safetensors", {.tensors = weights, .metadata = {}});
    return home_ / "weights/vit-small-patch4-8.safetensors";
  }
  TempHome home_;
};

TEST_F(SmallVit, ReadsItsSizesOffTheFile) {
  TimmVit vit(write(small_weights()));
  EXPECT_EQ(vit.feature_width(), kWidth);
  EXPECT_EQ(vit.image_size(), 8);
  EXPECT_EQ(vit.resized(), 8);
  const Backbone backbone = find_backbone((home_ / "weights/vit-small-patch4-8.safetensors").string());
  EXPECT_EQ(backbone.model.name, kTimmVit);
  EXPECT_EQ(backbone.image_size, 8);
}

// With blocks that add nothing, features are the class token, normalised.
TEST_F(SmallVit, FeaturesAreTheClassTokenBehindTheLastNorm) {
  NamedTensors weights = small_weights();
  const at::Tensor token = at::linspace(-1, 1, kWidth);
  set(weights, "cls_token", token.view({1, 1, kWidth}));
  TimmVit vit(write(weights));
  const at::Tensor features = vit.features(at::rand({2, 3, 8, 8}));
  const at::Tensor expected = (token - token.mean()) / (token.var(false) + 1e-6).sqrt();
  EXPECT_TRUE(at::allclose(features[0], expected, 1e-5, 1e-5));
  EXPECT_TRUE(features[0].equal(features[1]));
}

// Values of all tokens are mixed evenly where queries are zero: the class token sees the mean over patches and itself.
TEST_F(SmallVit, AttentionLooksAtPatches) {
  NamedTensors weights = small_weights();
  set(weights, "blocks.0.norm1.weight", at::ones({kWidth}));
  at::Tensor qkv = at::zeros({3 * kWidth, kWidth});
  qkv.narrow(0, 2 * kWidth, kWidth).copy_(at::eye(kWidth));
  set(weights, "blocks.0.attn.qkv.weight", qkv);
  set(weights, "blocks.0.attn.proj.weight", at::eye(kWidth));
  at::Generator generator = RandomStream(1, "patches").torch_generator();
  set(weights, "patch_embed.proj.weight", at::normal(0.0, 1.0, {kWidth, 3, kPatch, kPatch}, generator));
  TimmVit vit(write(weights));
  at::Tensor x = at::zeros({2, 3, 8, 8});
  x[1].narrow(1, 0, 4).fill_(0.5);  // two of four patches
  const at::Tensor features = vit.features(x);
  EXPECT_EQ(features[0].abs().max().item<double>(), 0);
  EXPECT_GT(features[1].abs().max().item<double>(), 0.1);
  EXPECT_TRUE(at::allclose(vit.features(x.flip(2)), features, 1e-4, 1e-4))
      << "no positions: the same patches elsewhere";
}

TEST_F(SmallVit, TakesGreyImagesOfAnySizeAndLooksAtTheMiddle) {
  NamedTensors weights = small_weights();
  at::Generator generator = RandomStream(2, "patches").torch_generator();
  for (NamedTensor& tensor : weights) tensor.value = at::normal(0.0, 0.3, tensor.value.sizes(), generator);
  TimmVit vit(write(weights));
  const at::Tensor grey = at::rand({1, 1, 20, 20}, generator) * 2 - 1;
  EXPECT_TRUE(vit.features(grey).equal(vit.features(grey.expand({1, 3, 20, 20}))));
  at::Tensor wide = at::zeros({1, 3, 8, 32});
  const at::Tensor before = vit.features(wide);
  wide.narrow(3, 0, 8).fill_(1);  // far from the middle
  EXPECT_TRUE(vit.features(wide).equal(before));
  wide.narrow(3, 14, 4).fill_(1);
  EXPECT_FALSE(vit.features(wide).equal(before));
}

TEST_F(SmallVit, AFileThatIsNoneIsRefused) {
  NamedTensors weights = small_weights();
  std::erase_if(weights, [](const NamedTensor& t) { return t.name == "blocks.0.mlp.fc2.bias"; });
  EXPECT_USER_ERROR(TimmVit(write(weights)), "'blocks.0.mlp.fc2.bias' is missing");
  weights = small_weights();
  weights[1].value = at::zeros({1, 4, kWidth});
  EXPECT_USER_ERROR(TimmVit(write(weights)), "'pos_embed' is 1×4×64, not 1×5×64");
  EXPECT_USER_ERROR(find_backbone("vit-unheard-of"), "is not here");
}

TEST(VitTiny, GivesItsDocumentedFeatures) {
  const auto file = find_timm_vit("vit-tiny");
  if (!file)
    GTEST_SKIP() << "vit-tiny is not installed (vit-tiny-patch16-224.safetensors in a folder weights of $SOTTO_DATA)";
  const at::NoGradGuard no_grad;
  TimmVit vit(*file);
  EXPECT_EQ(vit.image_size(), 224);
  EXPECT_EQ(vit.resized(), 248);
  const at::Tensor features = vit.features(at::zeros({1, 3, 224, 224}));
  EXPECT_NEAR(features[0][0].item<double>(), 8.3346, 2e-3);
  EXPECT_NEAR(features[0][1].item<double>(), 0.5935, 2e-3);
  EXPECT_NEAR(features[0][2].item<double>(), -0.6367, 2e-3);
  EXPECT_EQ(vit.classify(features).argmax(1).item<int64_t>(), 623);
}

}  // namespace
}  // namespace sotto::models
