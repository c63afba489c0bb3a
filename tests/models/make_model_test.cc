#include "../support/expect_user_error.h"
#include "models/catalogue.h"
#include "tasks.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sotto::models {
namespace {

struct Case {
  const char* name;
  Task task;
  int64_t features;
  int64_t parameters;  // with the classifier
};

Case cases[] = {
    {"logistic", {{13}, 2}, 13, 28},
    {"mlp", image_task(1, 28), 128, 235146},
    {"linear", {{13}, 2}, 14, 28},
    {"hog", image_task(1, 28), 1296, 12970},
    {"scatter", image_task(1, 28), 3969, 39700},
    {"adapter", {{13}, 2}, 13, 1769},
    {"cnn", image_task(1, 28), 32, 26010},
    {"cnn-pac", image_task(1, 28), 784, 11274},
    {"cnn-cifar", image_task(3, 32), 512, 2156490},
    {"resnet18", image_task(3, 32), 512, 11173962},
    {"resnet34", image_task(3, 32, 100), 512, 21328292},
    {"resnet50", image_task(3, 224, 1000), 2048, 25557032},
    {"resnet152", image_task(3, 224, 1000), 2048, 60192808},
    {"resnet50-keras", image_task(3, 64, 1000), 2048, 25583592},
    {"resnet50-keras-patches", image_task(3, 64, 1000), 5 * 2048, 25583592 + 4 * 2048 * 1000},
    {"mobilenet-v2", image_task(3, 64), 1280, 2219626},
    {"vit-tiny", image_task(3, 32), 192, 5362378},
    {"vit-small", image_task(3, 32), 384, 21341578},
    {"vit-base", image_task(3, 32), 768, 85150474},
    {"minilm", token_task(16), 384, 22566916},
};

TEST(MakeModel, EveryModelHasTheShapesAndSizeItShould) {
  EXPECT_EQ(std::size(cases) + 1, catalogue().size()) << "all but torchscript, whose shapes are those of a file";
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    const auto model = make(named(c.name), c.task);
    EXPECT_EQ(model->feature_width(), c.features);
    EXPECT_EQ(total_elements(model->shared_parameters()), c.parameters);
    EXPECT_TRUE(model->named_parameters().contains(model->head_name() + ".weight"));
    if (c.parameters > 30'000'000) continue;
    const at::NoGradGuard no_grad;
    model->eval();
    std::vector<int64_t> shape = c.task.record_shape;
    shape.insert(shape.begin(), 2);
    const at::Tensor x = c.task.tokens ? at::ones(shape, at::kLong) : at::zeros(shape);
    const at::Tensor features = model->features(x);
    EXPECT_EQ(features.sizes(), at::IntArrayRef({2, c.features}));
    EXPECT_EQ(model->classify(features).sizes(), at::IntArrayRef({2, c.task.classes}));
    EXPECT_TRUE(at::isfinite(features).all().item<bool>());
  }
}

TEST(MakeModel, OtherImageSizesAndShapesFit) {
  const at::NoGradGuard no_grad;
  const auto run = [](const models::ModelOptions& options, std::vector<int64_t> shape) {
    const auto model = make(options, {shape, 5});
    model->eval();
    shape.insert(shape.begin(), 1);
    return model->logits(at::zeros(shape)).sizes() == at::IntArrayRef({1, 5});
  };
  EXPECT_TRUE(run(named("cnn"), {3, 32, 32}));
  EXPECT_TRUE(run(named("cnn"), {1, 16, 40}));
  EXPECT_TRUE(run(named("cnn-pac"), {3, 17, 17}));
  EXPECT_TRUE(run(named("resnet18"), {1, 28, 28}));
  EXPECT_TRUE(run(named("resnet18"), {3, 65, 65}));
  EXPECT_TRUE(run(named("resnet50-keras"), {1, 33, 40}));
  EXPECT_TRUE(run(named("resnet50-keras-patches"), {1, 33, 40}));
  EXPECT_TRUE(run(named("mobilenet-v2"), {1, 37, 32}));
  EXPECT_TRUE(run(small_vit(), {2, 8, 12}));
}

TEST(MakeModel, PatchesHaveTheMeanOfTheWholeImage) {
  const at::NoGradGuard no_grad;
  const Task task{{3, 33, 64}, 5};
  const at::Tensor x = at::linspace(-1, 1, 2 * 3 * 33 * 64).reshape({2, 3, 33, 64});
  const auto whole = make(named("resnet50-keras"), task), patches = make(named("resnet50-keras-patches"), task);
  for (const auto& model : {whole, patches}) model->eval();
  const at::Tensor all = patches->features(x).reshape({2, 5, 2048});
  EXPECT_TRUE(all.select(1, 0).equal(whole->features(x)));
  EXPECT_TRUE(at::allclose(all.narrow(1, 1, 4).mean(1), all.select(1, 0), 1e-4, 1e-5));
  EXPECT_FALSE(all.select(1, 1).equal(all.select(1, 2)));
}

TEST(MakeModel, SameStreamSameModelWhateverTheGlobalGenerator) {
  for (const char* name : {"mlp", "cnn", "resnet18", "vit-tiny"}) {
    const auto options = small(name);
    const auto first = make(options, image_task(3, 32))->state();
    at::manual_seed(4242);
    const at::Tensor before = at::detail::getDefaultCPUGenerator().get_state();
    const auto second = make(options, image_task(3, 32))->state();
    EXPECT_TRUE(at::detail::getDefaultCPUGenerator().get_state().equal(before))
        << name << " drew from the global generator";
    const auto other = make(options, image_task(3, 32), 2)->state();
    for (size_t i = 0; i < first.size(); ++i) EXPECT_TRUE(first[i].value.equal(second[i].value)) << first[i].name;
    EXPECT_FALSE(first[0].value.equal(other[0].value)) << name;
  }
}

TEST(MakeModel, ResNetsCarryTorchvisionsNames) {
  auto options = named("resnet50");
  options.norm = models::Normalisation::kBatch;
  const auto state = make(options, image_task(3, 32))->state();
  for (const char* name : {"conv1.weight", "bn1.running_var", "layer1.0.downsample.0.weight",
                           "layer1.0.downsample.1.bias", "layer3.5.conv2.weight", "layer4.2.bn3.weight", "fc.bias"})
    EXPECT_TRUE(find_tensor(state, name).defined()) << name;
  EXPECT_FALSE(find_tensor(state, "conv1.bias").defined());
}

TEST(MakeModel, RefusesTasksItCannotFit) {
  EXPECT_USER_ERROR(make(named("resnet19"), image_task(3, 32)), "did you mean 'resnet1");
  EXPECT_USER_ERROR(make(named("cnn"), {{13}, 2}), "needs images");
  EXPECT_USER_ERROR(make(named("cnn"), image_task(1, 6)), "6×6");
  EXPECT_USER_ERROR(make(named("resnet18"), image_task(3, 4)), "at least 8×8");
  EXPECT_USER_ERROR(make(named("mobilenet-v2"), image_task(4, 64)), "4 channels");
  EXPECT_USER_ERROR(make(named("minilm"), {{13}, 2}), "reads text");
  EXPECT_USER_ERROR(make(named("mlp"), token_task(8)), "cannot read text");
  EXPECT_USER_ERROR(make(named("minilm"), token_task(513)), "512");
  EXPECT_USER_ERROR(make(named("mlp"), {{13}, 1}), "at least 2 classes");
}

TEST(MakeModel, RefusesModelsThatNoMemoryHolds) {
  auto mlp = named("mlp");
  mlp.hidden = {1'000'000'000};
  EXPECT_USER_ERROR(make(mlp, image_task(1, 28)), "model 'mlp' would have 7.95e+11 parameters");
  auto adapter = named("adapter");
  adapter.adapter = 100'000'000'000;
  EXPECT_USER_ERROR(make(adapter, {{13}, 2}), "make it smaller");
  for (int64_t models::ModelOptions::*key : {&models::ModelOptions::depth, &models::ModelOptions::adapter}) {
    auto vit = named("vit-tiny");
    vit.*key = 1'000'000'000;
    EXPECT_USER_ERROR(make(vit, image_task(3, 32)), "make it smaller");
  }
  auto wide = named("vit-tiny");
  wide.width = 99'999;
  EXPECT_USER_ERROR(make(wide, image_task(3, 32)), "make it smaller");
}

TEST(MakeModel, RefusesOptionsThatMakeNoSense) {
  const auto change = [](const char* name, auto edit) {
    models::ModelOptions options = named(name);
    edit(options);
    make(options, image_task(3, 32));
  };
  EXPECT_USER_ERROR(change("vit-tiny", [](auto& o) { o.patch = 5; }), "does not divide");
  EXPECT_USER_ERROR(change("vit-tiny", [](auto& o) { o.patch = 0; }), "does not divide");
  EXPECT_USER_ERROR(change("vit-tiny", [](auto& o) { o.heads = 5; }), "multiple");
  EXPECT_USER_ERROR(change("vit-tiny", [](auto& o) { o.adapter = -1; }), "negative");
  EXPECT_USER_ERROR(change("mlp", [](auto& o) { o.hidden = {8, 0}; }), "positive");
  EXPECT_USER_ERROR(change("mlp", [](auto& o) { o.dropout = 1.0; }), "dropout");
  EXPECT_USER_ERROR(change("mlp", [](auto& o) { o.personal = {"heat."}; }), "heat.");
  EXPECT_USER_ERROR(change("mlp", [](auto& o) { o.weights = "nowhere"; }), "unknown weights 'nowhere'");
}

}  // namespace
}  // namespace sotto::models
