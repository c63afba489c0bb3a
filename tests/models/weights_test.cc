#include "models/weights/weights.h"

#include "../support/expect_user_error.h"
#include "../support/temp_folder.h"
#include "base/files.h"
#include "tasks.h"

#include <ATen/ATen.h>

#include <gtest/gtest.h>

namespace sotto::models {
namespace {

using test::TempFolder;

NamedTensors two() {
  return {{"a", at::tensor({1.0f, 2.0f})}, {"b", at::full({1, 1}, 3.0f)}};
}

TEST(AssignWeights, CopiesByNameWhateverTheOrder) {
  NamedTensors into = two();
  assign_weights(into, {{"b", at::full({1, 1}, 30.0f)}, {"a", at::tensor({10.0f, 20.0f})}}, "test");
  EXPECT_EQ(into[0].value[1].item<float>(), 20.0f);
  EXPECT_EQ(into[1].value[0][0].item<float>(), 30.0f);
}

TEST(AssignWeights, ListsEveryMismatchInOneLineAndChangesNothing) {
  NamedTensors into = two();
  const auto assign = [&] { assign_weights(into, {{"c", at::zeros({1})}, {"b", at::zeros({2, 2})}}, "w.pt"); };
  EXPECT_USER_ERROR(assign(), "w.pt");
  EXPECT_USER_ERROR(assign(), "missing: a; not in the model: c; of another shape: b [2×2] instead of [1×1]");
  EXPECT_EQ(into[0].value[0].item<float>(), 1.0f);
}

TEST(AssignWeights, LongListsAreCut) {
  NamedTensors into;
  for (int i = 0; i < 20; ++i) into.push_back({fmt::format("t{}", i), at::zeros({1})});
  EXPECT_USER_ERROR(assign_weights(into, {}, "w"), "t11 and 8 more");
}

TEST(LoadWeights, RoundTripThroughAFile) {
  const TempFolder folder;
  auto options = named("resnet18");
  options.norm = models::Normalisation::kBatch;
  const auto saved = make(options, image_task(3, 32), 1);
  saved->train();
  saved->logits(at::randn({4, 3, 32, 32}));
  write_state_dict(folder / "w.pt", saved->state());
  options.weights = (folder / "w.pt").string();
  const auto loaded = make(options, image_task(3, 32), 2);
  const auto expected = saved->state(), got = loaded->state();
  for (size_t i = 0; i < got.size(); ++i) EXPECT_TRUE(got[i].value.equal(expected[i].value)) << got[i].name;
}

TEST(LoadWeights, AClassifierForOtherClassesIsLeftOut) {
  const auto source = make(named("mlp"), image_task(1, 8, 10), 1);
  const auto target = make(named("mlp"), image_task(1, 8, 3), 2);
  const at::Tensor head = find_tensor(target->state(), "head.weight").clone();
  load_weights(*target, "mlp", clone(source->state()), "test");
  EXPECT_TRUE(find_tensor(target->state(), "fc1.weight").equal(find_tensor(source->state(), "fc1.weight")));
  EXPECT_TRUE(find_tensor(target->state(), "head.weight").equal(head));
}

TEST(LoadWeights, ABackboneAloneAndWrappedNamesLoad) {
  const auto source = make(named("mlp"), image_task(1, 8), 1);
  NamedTensors weights = clone(source->state());
  std::erase_if(weights, [](const auto& w) { return w.name.starts_with("head."); });
  for (auto& weight : weights) weight.name = "module." + weight.name;
  const auto target = make(named("mlp"), image_task(1, 8), 2);
  load_weights(*target, "mlp", weights, "test");
  EXPECT_TRUE(find_tensor(target->state(), "fc2.bias").equal(find_tensor(source->state(), "fc2.bias")));
}

TEST(LoadWeights, AnotherBackboneIsRefused) {
  const auto source = make(named("cnn"), image_task(1, 28), 1);
  const auto target = make(named("mlp"), image_task(1, 28), 2);
  EXPECT_USER_ERROR(load_weights(*target, "mlp", clone(source->state()), "cnn.pt"), "cnn.pt (for model 'mlp')");
  EXPECT_USER_ERROR(load_weights(*target, "mlp", clone(source->state()), "cnn.pt"), "not in the model: conv1.weight");
}

TEST(LoadWeights, AVitWithClassTokenLosesItAndKeepsFreshAdapters) {
  auto options = small_vit();
  const auto source = make(options, image_task(3, 8), 1);
  NamedTensors weights = clone(source->state());
  for (auto& weight : weights) {
    if (weight.name != "pos_embed.weight") continue;
    weight.name = "pos_embed";
    weight.value = at::cat({at::full({1, 1, 8}, 9.0), weight.value}, 1);
  }
  weights.push_back({"cls_token", at::zeros({1, 1, 8})});
  options.adapter = 2;
  const auto target = make(options, image_task(3, 8), 2);
  load_weights(*target, "vit-tiny", weights, "test");
  const at::Tensor x = at::randn({2, 3, 8, 8});
  EXPECT_TRUE(source->logits(x).equal(target->logits(x)));
}

}  // namespace
}  // namespace sotto::models
