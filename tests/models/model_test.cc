#include "models/model.h"

#include "../support/expect_user_error.h"
#include "tasks.h"

#include <ATen/ATen.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sotto::models {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> names(const NamedTensors& tensors) {
  std::vector<std::string> found;
  for (const auto& tensor : tensors) found.push_back(tensor.name);
  return found;
}

TEST(Model, ParametersAreSharedUnlessNamedPersonal) {
  auto options = named("cnn");
  options.personal = {"fc1.", "head."};
  const auto model = make(options, image_task(1, 28));
  EXPECT_THAT(names(model->shared_parameters()),
              ElementsAre("conv1.weight", "conv1.bias", "conv2.weight", "conv2.bias"));
  EXPECT_THAT(names(model->personal_parameters()), ElementsAre("fc1.weight", "fc1.bias", "head.weight", "head.bias"));
}

TEST(Model, HeadMeansTheClassifierWhateverItsName) {
  auto options = named("resnet18");
  options.personal = {"head."};
  EXPECT_THAT(names(make(options, image_task(3, 32))->personal_parameters()), ElementsAre("fc.weight", "fc.bias"));
}

TEST(Model, FrozenBackboneLeavesOnlyAdaptersAndHead) {
  auto options = small_vit();
  options.depth = 1;
  options.adapter = 3;
  options.freeze_backbone = true;
  EXPECT_THAT(names(make(options, image_task(3, 8))->shared_parameters()),
              ElementsAre("blocks.0.adapter.down.weight", "blocks.0.adapter.down.bias", "blocks.0.adapter.up.weight",
                          "blocks.0.adapter.up.bias", "head.weight", "head.bias"));
}

TEST(Model, FrozenParametersGetNoGradient) {
  auto options = named("mlp");
  options.freeze_backbone = true;
  const auto model = make(options, image_task(1, 8));
  model->logits(at::randn({2, 1, 8, 8})).sum().backward();
  for (const auto& parameter : model->named_parameters())
    EXPECT_EQ(parameter.value().grad().defined(), parameter.key().starts_with("head.")) << parameter.key();
}

TEST(Model, BuffersAreStateButNotParameters) {
  auto options = named("resnet18");
  options.norm = models::Normalisation::kBatch;
  const auto model = make(options, image_task(3, 32));
  EXPECT_EQ(model->buffer_tensors().size(), 40u);
  EXPECT_EQ(model->state().size(), model->shared_parameters().size() + 40u);
  EXPECT_EQ(find_tensor(model->shared_parameters(), "bn1.running_mean").defined(), false);
  EXPECT_EQ(find_tensor(model->state(), "bn1.running_mean").defined(), true);
  EXPECT_THAT(make(named("resnet18"), image_task(3, 32))->buffer_tensors(), IsEmpty());
}

TEST(Model, ListsAreTheModelsOwnTensors) {
  const auto model = make(named("logistic"), {{3}, 2});
  NamedTensors parameters = model->shared_parameters();
  {
    const at::NoGradGuard no_grad;
    for (auto& parameter : parameters) parameter.value.zero_();
  }
  EXPECT_EQ(model->logits(at::ones({1, 3})).abs().max().item<float>(), 0.0f);
}

TEST(Model, DropoutFollowsTheModelsGenerator) {
  auto options = named("mlp");
  options.dropout = 0.5;
  const auto model = make(options, {{16}, 3});
  const at::Tensor x = at::ones({4, 16});
  const auto pass = [&](uint64_t seed) {
    model->set_generator(RandomStream(seed, "dropout").torch_generator());
    return model->logits(x);
  };
  EXPECT_TRUE(pass(1).equal(pass(1)));
  EXPECT_FALSE(pass(1).equal(pass(2)));
  model->eval();
  EXPECT_TRUE(pass(1).equal(pass(2)));
}

TEST(Model, FreshAdaptersChangeNothing) {
  auto options = small_vit();
  const auto plain = make(options, image_task(3, 8));
  options.adapter = 4;
  const auto adapted = make(options, image_task(3, 8));
  for (auto& parameter : plain->named_parameters()) {
    const at::NoGradGuard no_grad;
    adapted->named_parameters()[parameter.key()].copy_(parameter.value());
  }
  const at::Tensor x = at::randn({2, 3, 8, 8});
  EXPECT_TRUE(plain->features(x).equal(adapted->features(x)));
}

TEST(Model, TokensOutsideOfTheVocabularyAreAnError) {
  const auto model = make(named("minilm"), token_task(2));
  EXPECT_USER_ERROR(model->features(at::full({1, 2}, 30522, at::kLong)), "token 30522");
}

TEST(Model, TextFeaturesDoNotDependOnPadding) {
  const auto model = make(named("minilm"), token_task(12));
  const at::NoGradGuard no_grad;
  const at::Tensor text = at::tensor({101, 2023, 2003, 102}, at::kLong).unsqueeze(0);
  const at::Tensor padded = at::constant_pad_nd(text, {0, 8});
  const at::Tensor beside_longer = at::cat({padded, at::full({1, 12}, 7, at::kLong)});
  EXPECT_TRUE(at::allclose(model->features(text), model->features(padded), 1e-4, 1e-5));
  EXPECT_TRUE(at::allclose(model->features(text)[0], model->features(beside_longer)[0], 1e-4, 1e-5));
  EXPECT_NEAR(model->features(text).norm().item<double>(), 1.0, 1e-5);
}

}  // namespace
}  // namespace sotto::models
