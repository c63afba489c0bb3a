#include "models/lora.h"

#include "../support/expect_user_error.h"
#include "models/layers.h"
#include "models/weights/weights.h"
#include "tasks.h"

#include <ATen/ATen.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <functional>

namespace sotto::models {
namespace {

using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

const Task kImages = image_task(3, 8);

ModelOptions with_lora(ModelOptions options, int64_t rank, std::vector<std::string> targets) {
  options.lora = {rank, std::move(targets)};
  return options;
}

ModelOptions one_block() {
  ModelOptions options = small_vit();
  options.depth = 1;
  return options;
}

std::vector<std::string> names(const NamedTensors& tensors) {
  std::vector<std::string> found;
  for (const auto& tensor : tensors) found.push_back(tensor.name);
  return found;
}

void draw_paths(Model& model) {
  const at::NoGradGuard no_grad;
  for (auto& [name, value] : model.state()) {
    if (is_lora(name)) value.normal_(0, 0.5);
  }
}

TEST(Lora, AFreshPathChangesNothing) {
  const at::Tensor x = at::randn({2, 3, 8, 8});
  const auto plain = make(small_vit(), kImages), adapted = make(with_lora(small_vit(), 2, {"attn", "fc1"}), kImages);
  EXPECT_TRUE(plain->logits(x).equal(adapted->logits(x)));
  draw_paths(*adapted);
  EXPECT_FALSE(at::allclose(plain->logits(x), adapted->logits(x), 1e-2, 1e-2));
}

TEST(Lora, OnlyPathsAndTheHeadAreTrained) {
  const auto model = make(with_lora(one_block(), 2, {"qkv"}), kImages);
  EXPECT_THAT(
      names(model->shared_parameters()),
      ElementsAre("blocks.0.attn.qkv.lora_a.weight", "blocks.0.attn.qkv.lora_b.weight", "head.weight", "head.bias"));
  EXPECT_EQ(find_tensor(model->state(), "blocks.0.attn.qkv.lora_a.weight").sizes(), at::IntArrayRef({2, 8}));
  EXPECT_EQ(find_tensor(model->state(), "blocks.0.attn.qkv.lora_b.weight").sizes(), at::IntArrayRef({24, 2}));
}

TEST(Lora, AdaptersAreTrainedAsWell) {
  ModelOptions options = with_lora(one_block(), 2, {"fc2"});
  options.adapter = 3;
  EXPECT_THAT(
      names(make(options, kImages)->shared_parameters()),
      UnorderedElementsAre("blocks.0.mlp.fc2.lora_a.weight", "blocks.0.mlp.fc2.lora_b.weight",
                           "blocks.0.adapter.down.weight", "blocks.0.adapter.down.bias", "blocks.0.adapter.up.weight",
                           "blocks.0.adapter.up.bias", "head.weight", "head.bias"));
}

TEST(Lora, ATargetedHeadIsFrozenItself) {
  const auto model = make(with_lora(named("mlp"), 2, {"head"}), image_task(1, 8));
  EXPECT_THAT(names(model->shared_parameters()), ElementsAre("head.lora_a.weight", "head.lora_b.weight"));
}

TEST(Lora, TargetsAreWholePartsOfNames) {
  const auto paths = [](const std::vector<std::string>& targets) {
    return names(make(with_lora(small_vit(), 1, targets), kImages)->shared_parameters());
  };
  EXPECT_THAT(paths({"attn"}), ElementsAre("blocks.0.attn.qkv.lora_a.weight", "blocks.0.attn.qkv.lora_b.weight",
                                           "blocks.0.attn.proj.lora_a.weight", "blocks.0.attn.proj.lora_b.weight",
                                           "blocks.1.attn.qkv.lora_a.weight", "blocks.1.attn.qkv.lora_b.weight",
                                           "blocks.1.attn.proj.lora_a.weight", "blocks.1.attn.proj.lora_b.weight",
                                           "head.weight", "head.bias"));
  EXPECT_THAT(
      paths({"blocks.1.attn", "1.attn.proj"}),
      ElementsAre("blocks.1.attn.qkv.lora_a.weight", "blocks.1.attn.qkv.lora_b.weight",
                  "blocks.1.attn.proj.lora_a.weight", "blocks.1.attn.proj.lora_b.weight", "head.weight", "head.bias"));
  EXPECT_USER_ERROR(paths({"att"}),
                    "'att' is part of no layer's name; the model's linear layers are called qkv, proj, "
                    "fc1, fc2, head (the first is 'blocks.0.attn.qkv')");
  EXPECT_USER_ERROR(paths({"qkv", "norm1"}), "'norm1' is no linear layer and holds none");
  EXPECT_USER_ERROR(paths({"patch_embed"}), "'patch_embed' is no linear layer and holds none");
}

TEST(Lora, ARankIsAtMostTheLayers) {
  make(with_lora(named("mlp"), 10, {"head"}), image_task(1, 8));
  EXPECT_USER_ERROR(make(with_lora(named("mlp"), 11, {"head"}), image_task(1, 8)),
                    "model.lora.rank: 11 is more than the layer 'head' [10, 128] has; it can be 10 at most");
}

TEST(Lora, StartsFromThePublicSeedAlone) {
  const ModelOptions options = with_lora(small_vit(), 2, {"attn"});
  const auto start = [&](uint64_t seed) { return make(options, kImages, seed)->state(); };
  const NamedTensors first = start(1), again = start(1), other = start(2);
  int64_t factors = 0;
  for (size_t i = 0; i < first.size(); ++i) {
    EXPECT_TRUE(first[i].value.equal(again[i].value)) << first[i].name;
    if (!first[i].name.ends_with("lora_a.weight")) continue;
    ++factors;
    EXPECT_FALSE(first[i].value.equal(other[i].value)) << first[i].name;
    EXPECT_LE(first[i].value.abs().max().item<double>(), 1 / std::sqrt(8.0));
    EXPECT_EQ(first[i + 1].value.abs().max().item<double>(), 0.0) << first[i + 1].name;
  }
  EXPECT_EQ(factors, 4);
}

TEST(Lora, PathsOfPersonalLayersArePersonal) {
  ModelOptions options = with_lora(small_vit(), 1, {"qkv"});
  options.personal = {"blocks.1.", "head."};
  const auto model = make(options, kImages);
  EXPECT_THAT(names(model->shared_parameters()),
              ElementsAre("blocks.0.attn.qkv.lora_a.weight", "blocks.0.attn.qkv.lora_b.weight"));
  EXPECT_THAT(
      names(model->personal_parameters()),
      ElementsAre("blocks.1.attn.qkv.lora_a.weight", "blocks.1.attn.qkv.lora_b.weight", "head.weight", "head.bias"));
}

TEST(Lora, MergedWeightsAreThePlainModels) {
  const auto adapted = make(with_lora(small_vit(), 2, {"attn", "mlp", "head"}), kImages);
  draw_paths(*adapted);
  const auto plain = make(small_vit(), kImages, 7);
  const at::Tensor x = at::randn({3, 3, 8, 8});
  ASSERT_FALSE(at::allclose(plain->logits(x), adapted->logits(x), 1e-2, 1e-2));
  load_weights(*plain, "vit-tiny", merge_lora(clone(adapted->state())), "the merged weights");
  EXPECT_TRUE(at::allclose(plain->logits(x), adapted->logits(x), 1e-4, 1e-5));
}

TEST(Lora, GoesOnFromWeightsWithoutPaths) {
  const auto before = make(small_vit(), kImages, 5);
  const std::string file = ::testing::TempDir() + "sotto-lora-weights.pt";
  write_state_dict(file, before->state());
  ModelOptions options = with_lora(small_vit(), 2, {"attn"});
  options.weights = file;
  const at::Tensor x = at::randn({2, 3, 8, 8});
  EXPECT_TRUE(before->logits(x).equal(make(options, kImages)->logits(x)));
}

TEST(Lora, OfARunWithoutItNothingIsSaid) {
  EXPECT_FALSE(to_json(ModelOptions()).contains("lora"));
  const nlohmann::json said = to_json(with_lora(ModelOptions(), 4, {"fc1"}));
  EXPECT_EQ(said["lora"], nlohmann::json({{"rank", 4}, {"targets", {"fc1"}}}));
}

}  // namespace
}  // namespace sotto::models
