// The real pretrained weights, where they are installed.
#include "base/error.h"
#include "models/text/wordpiece.h"
#include "models/weights/weight_store.h"
#include "models/weights/weights.h"
#include "tasks.h"

#include <ATen/ATen.h>

#include <gtest/gtest.h>

namespace sotto::models {
namespace {

bool installed(const std::string& name) {
  try {
    find_weights(name);
    return true;
  } catch (const UserError&) {
    return false;
  }
}

std::shared_ptr<Model> make_installed(const std::string& name, const Task& task) {
  const Backbone backbone = find_backbone(name);
  auto model = make(backbone.model, task);
  model->eval();
  return model;
}

TEST(InstalledWeights, MiniLmGivesItsDocumentedEmbedding) {
  if (!installed("minilm")) GTEST_SKIP() << "minilm is not installed (sotto data install minilm)";
  const at::NoGradGuard no_grad;
  const auto tokenizer = WordPiece::open(find_tokenizer("minilm"));
  const at::Tensor tokens = tokenizer.encode_all({"This is an example sentence"}, 128);
  EXPECT_TRUE(tokens.equal(at::tensor({101, 2023, 2003, 2019, 2742, 6251, 102}, at::kLong).unsqueeze(0)));
  const at::Tensor embedding = make_installed("minilm", token_task(tokens.size(1)))->features(tokens)[0];
  EXPECT_NEAR(embedding[0].item<double>(), 0.0677, 2e-4);
  EXPECT_NEAR(embedding[1].item<double>(), 0.0636, 2e-4);
  EXPECT_NEAR(embedding[2].item<double>(), 0.0487, 2e-4);
}

TEST(InstalledWeights, ResNet50KnowsItsClassesOnlyIfThereAreAThousand) {
  if (!installed("resnet50")) GTEST_SKIP() << "resnet50 is not installed (sotto data install resnet50)";
  const NamedTensors weights = read_weights(find_weights("resnet50"));
  EXPECT_EQ(total_elements(weights), 25636712);
  const auto model = make_installed("resnet50", image_task(3, 64, 1000));
  EXPECT_TRUE(find_tensor(model->state(), "head.weight").equal(find_tensor(weights, "fc1000.weight")));
  const auto other = make_installed("resnet50", image_task(3, 64, 10));
  EXPECT_TRUE(find_tensor(other->state(), "conv1.weight").equal(find_tensor(weights, "conv1.weight")));
}

TEST(InstalledWeights, MobileNetFeaturesTellImagesApart) {
  if (!installed("mobilenet-v2")) GTEST_SKIP() << "mobilenet-v2 is not installed (sotto data install mobilenet-v2)";
  const at::NoGradGuard no_grad;
  const auto model = make_installed("mobilenet-v2", image_task(3, 64));
  const at::Tensor ramp = at::linspace(-1.0, 1.0, 64).expand({2, 3, 64, 64}).clone();
  ramp[1].neg_();
  const at::Tensor features = model->features(ramp);
  EXPECT_TRUE(at::isfinite(features).all().item<bool>());
  EXPECT_GT((features[0] - features[1]).norm().item<double>(), 0.1 * features[0].norm().item<double>());
}

}  // namespace
}  // namespace sotto::models
