// Every model of the catalogue against the loop over single examples.
#include "models/catalogue.h"

#include "reference.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace sotto::privacy {
namespace {

constexpr double kTolerance = 1e-5;

struct CatalogueCase {
  std::string name;
  models::Task task;
  int64_t batch;
  bool training = true;
  std::function<void(models::ModelOptions&)> change = [](auto&) {};
};

models::Task images(int64_t channels, int64_t size) {
  return {{channels, size, size}, 5};
}

void small_vit(models::ModelOptions& options) {
  options.width = 24;
  options.depth = 2;
  options.heads = 3;
  options.patch = 4;
}

std::vector<CatalogueCase> cases() {
  return {
      {"logistic", images(1, 8), 12},
      {"linear", {{7}, 3}, 12},
      {"hog", images(1, 16), 12},
      {"scatter", images(1, 16), 12},
      {"adapter", {{7}, 3}, 12},
      {"mlp", images(1, 12), 12},
      {"cnn", images(1, 28), 12},
      {"cnn-pac", images(1, 16), 12},
      {"cnn-cifar", images(3, 16), 10},
      {"resnet18", images(3, 16), 4},
      {"resnet34", images(3, 8), 2},
      {"resnet50", images(3, 8), 2},
      {"resnet152", images(3, 8), 2},
      {"resnet50-keras", images(3, 32), 2, false},
      {"resnet50-keras-patches", images(3, 32), 2, false},
      {"mobilenet-v2", images(3, 32), 2},
      {"vit-tiny", images(3, 16), 7, true, small_vit},
      {"vit-tiny", images(3, 16), 7, true, [](auto& o) { small_vit(o), o.adapter = 6; }},
      {"vit-tiny", images(3, 16), 7, true, [](auto& o) { small_vit(o), o.adapter = 6, o.freeze_backbone = true; }},
      {"vit-small", images(3, 16), 3, true, [](auto& o) { o.patch = 4, o.depth = 2; }},
      {"vit-base", images(3, 8), 2, true, [](auto& o) { o.patch = 4, o.depth = 1; }},
      {"minilm", {{9}, 4, true}, 2},
      {"resnet18", images(3, 8), 4, false, [](auto& o) { o.norm = models::Normalisation::kBatch; }},
      {"resnet18", images(3, 8), 4, true,
       [](auto& o) { o.norm = models::Normalisation::kBatch, o.freeze_backbone = true; }},
      {"cnn", images(1, 28), 8, true, [](auto& o) { o.personal = {"head."}; }},
  };
}

class ClippedSumOf : public ::testing::TestWithParam<CatalogueCase> {};

TEST_P(ClippedSumOf, AModelEqualsTheLoop) {
  const auto& [name, task, batch, training, change] = GetParam();
  models::ModelOptions options;
  options.name = name;
  change(options);
  Case c = make_case(options, task, batch);
  c.model->train(training);
  const at::Tensor gradients = gradients_one_by_one(c);
  const at::Tensor norms = norms_of(gradients);
  const double bound = middle(norms);
  PerExampleClipper clipper(*c.model, c.flat, {.bound = bound, .usual_batch = batch});
  const ClippedSum result = clipper.sum(c.x, c.y);
  std::string worst;
  EXPECT_LT(difference(c, clipped_sum(gradients, bound), &worst), kTolerance) << worst;
  EXPECT_TRUE(at::allclose(result.norms[0], norms, 1e-5, 1e-12)) << result.norms[0] << norms;
  EXPECT_EQ(result.clipped, norms.gt(bound).sum().item<int64_t>());
  EXPECT_EQ(result.non_finite, 0);
}

INSTANTIATE_TEST_SUITE_P(Catalogue, ClippedSumOf, ::testing::ValuesIn(cases()), [](const auto& test) {
  std::string name = std::to_string(test.index) + "_" + test.param.name;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

TEST(CatalogueCases, NoModelIsLeftOut) {
  std::set<std::string> tested, known;
  for (const auto& c : cases()) tested.insert(c.name);
  for (const auto& entry : models::catalogue()) {
    if (!entry.is_archive) known.insert(entry.name);  // script_test.cc
  }
  EXPECT_EQ(tested, known);
}

}  // namespace
}  // namespace sotto::privacy
