// The surrogate on real weights and images; skipped where they are not installed.
#include "models/vision_language/vision_language.h"

#include "base/error.h"
#include "base/files.h"
#include "data/readers/feature_file.h"

#include <ATen/ATen.h>

#include <gtest/gtest.h>

namespace sotto::models {
namespace {

double accuracy(const VisionLanguage& model, const at::Tensor& x, const at::Tensor& y, const at::Tensor& text) {
  const at::Tensor images = model.image_features(x).select(1, 0);
  return at::matmul(images, text.t()).argmax(1).eq(y).to(at::kDouble).mean().item<double>();
}

// ResNet-50 features of all of Office–Caltech10 that some run has left in the cache: computing them takes too long
// here.
std::optional<data::Dataset> cached_features() {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(data_home() / "cache", error)) {
    if (!entry.path().filename().string().starts_with("features-office-caltech10-resnet50-")) continue;
    data::Dataset dataset = data::read_feature_file(entry.path(), "office-caltech10");
    if (dataset.train.size() == 2533) return dataset;
  }
  return std::nullopt;
}

TEST(AlignedTowers, ZeroShotOnOfficeCaltechIsAsMeasured) {
  const auto all = cached_features();
  if (!all) GTEST_SKIP() << "no features: sotto data features office-caltech10 resnet50";
  std::shared_ptr<const VisionLanguage> model;
  try {
    model = open_vision_language("resnet50-minilm", 2048);
  } catch (const UserError& error) {
    GTEST_SKIP() << error.what();
  }
  const PromptedClasses classes(model, all->class_names, 4);
  for (const auto& [domain, expected] : {std::pair{"webcam", 0.647}, std::pair{"dslr", 0.726}}) {
    const auto found = std::find(all->domain_names.begin(), all->domain_names.end(), domain);
    ASSERT_NE(found, all->domain_names.end());
    const at::Tensor rows = all->train.domain.eq(found - all->domain_names.begin()).nonzero().squeeze(1);
    const at::Tensor x = all->train.x.index_select(0, rows), y = all->train.y.index_select(0, rows);
    EXPECT_NEAR(accuracy(*model, x, y, classes.zero_shot()), expected, 0.02) << domain;
    // Four vectors that are those words say the same as the words.
    EXPECT_NEAR(accuracy(*model, x, y, classes.text_features(classes.photo_prompt().unsqueeze(0))[0]), expected, 0.02);
  }
}

}  // namespace
}  // namespace sotto::models
