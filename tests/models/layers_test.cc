#include "models/layers.h"

#include "base/random.h"
#include "tasks.h"

#include <ATen/ATen.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sotto::models {
namespace {

using ::testing::ElementsAre;

at::Generator generator(uint64_t seed = 1) {
  return RandomStream(seed, "layers-test").torch_generator();
}

TEST(Layers, InitialisationStaysWithinPyTorchsBounds) {
  const Linear linear(100, 50, generator());
  EXPECT_LE(linear.weight.abs().max().item<double>(), 0.1);
  EXPECT_GT(linear.weight.abs().max().item<double>(), 0.09);
  EXPECT_LE(linear.bias.abs().max().item<double>(), 0.1);
  const Conv2d conv({.in = 4, .out = 8, .kernel = 5}, generator());
  EXPECT_LE(conv.weight.abs().max().item<double>(), 0.1);
  EXPECT_GT(conv.weight.abs().max().item<double>(), 0.09);
  EXPECT_NEAR(Embedding(200, 50, generator()).weight.std().item<double>(), 1.0, 0.05);
}

TEST(Layers, GroupedConvolutionIsPerChannel) {
  Conv2d conv({.in = 3, .out = 3, .kernel = 1, .groups = 3, .bias = false}, generator());
  const at::Tensor x = at::ones({1, 3, 2, 2});
  const at::Tensor y = conv.forward(x);
  for (int64_t c = 0; c < 3; ++c) EXPECT_FLOAT_EQ(y[0][c][0][0].item<float>(), conv.weight[c][0][0][0].item<float>());
}

TEST(Layers, BatchNormLearnsStatisticsOnlyWhileTrainingAndNotFrozen) {
  BatchNorm2d norm(2);
  const at::Tensor x = at::full({4, 2, 3, 3}, 5.0);
  norm.eval();
  norm.forward(x);
  EXPECT_FLOAT_EQ(norm.running_mean[0].item<float>(), 0.0f);
  norm.train();
  norm.forward(x);
  EXPECT_FLOAT_EQ(norm.running_mean[0].item<float>(), 0.5f);
  norm.weight.set_requires_grad(false);
  norm.forward(x);
  EXPECT_FLOAT_EQ(norm.running_mean[0].item<float>(), 0.5f);
}

TEST(Layers, DropoutKeepsTheMeanAndFollowsItsGenerator) {
  const auto shared = std::make_shared<at::Generator>(generator(7));
  Dropout dropout(0.25, shared);
  const at::Tensor x = at::ones({10000});
  const at::Tensor first = dropout.forward(x);
  EXPECT_NEAR(first.mean().item<double>(), 1.0, 0.03);
  EXPECT_NEAR(first.eq(0).to(at::kDouble).mean().item<double>(), 0.25, 0.02);
  *shared = generator(7);
  EXPECT_TRUE(dropout.forward(x).equal(first));
  dropout.eval();
  EXPECT_TRUE(dropout.forward(x).equal(x));
}

TEST(Layers, AttentionToOneTokenIsItsValue) {
  const at::Tensor q = at::randn({2, 1, 6}), v = at::randn({2, 1, 6});
  EXPECT_TRUE(at::allclose(attend(q, q, v, 3), v));
}

TEST(Layers, MaskedTokensAreNotSeen) {
  const at::Tensor x = at::randn({1, 3, 4});
  const at::Tensor mask = at::tensor({0.0f, 0.0f, -1e9f}).view({1, 1, 1, 3});
  const at::Tensor part = x.narrow(1, 0, 2);
  EXPECT_TRUE(at::allclose(attend(x, x, x, 2, mask).narrow(1, 0, 2), attend(part, part, part, 2), 1e-5, 1e-6));
}

TEST(Layers, DottedPathsNestNames) {
  torch::nn::Module owner;
  add<Linear>(owner, "encoder.layer.0.dense", 2, 3, generator());
  add<Linear>(owner, "encoder.layer.1.dense", 2, 3, generator());
  EXPECT_THAT(owner.named_parameters().keys(),
              ElementsAre("encoder.layer.0.dense.weight", "encoder.layer.0.dense.bias", "encoder.layer.1.dense.weight",
                          "encoder.layer.1.dense.bias"));
}

class Recorder : public LayerObserver {
 public:
  at::Tensor on_forward(Layer& layer, const at::Tensor& input, const at::Tensor& output) override {
    seen.push_back(&layer);
    inputs.push_back(input);
    outputs.push_back(output);
    return output;
  }
  std::vector<Layer*> seen;
  std::vector<at::Tensor> inputs, outputs;
};

TEST(Layers, ObserverSeesEveryParameterisedLayerOfAPass) {
  for (const char* name : {"logistic", "mlp", "cnn", "resnet18", "vit-tiny"}) {
    const auto model = make(small(name), image_task(3, 28));
    Recorder recorder;
    at::Tensor logits;
    {
      const ObserveLayers observation(recorder);
      logits = model->logits(at::zeros({2, 3, 28, 28}));
    }
    size_t parameterised = 0;
    for (const auto& module : model->modules(false)) parameterised += module->parameters(false).empty() ? 0 : 1;
    EXPECT_EQ(recorder.seen.size(), parameterised) << name;
    EXPECT_TRUE(recorder.outputs.back().is_same(logits)) << name;
    model->logits(at::zeros({2, 3, 28, 28}));
    EXPECT_EQ(recorder.seen.size(), parameterised) << name << ": seen after the observation ended";
  }
}

TEST(Layers, ObservationDoesNotChangeTheResult) {
  const auto model = make(named("cnn"), image_task(1, 28));
  const at::Tensor x = at::randn({3, 1, 28, 28});
  Recorder recorder;
  const ObserveLayers observation(recorder);
  const at::Tensor observed = model->logits(x);
  Recorder inner;
  {
    const ObserveLayers nested(inner);
    model->logits(x);
  }
  EXPECT_EQ(inner.seen.size(), recorder.seen.size());
  EXPECT_EQ(recorder.seen.size(), 4u);
  EXPECT_EQ(Layer::observer(), &recorder);
  EXPECT_TRUE(at::allclose(observed, model->logits(x), 1e-4, 1e-5));
}

}  // namespace
}  // namespace sotto::models
