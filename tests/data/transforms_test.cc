#include "data/transforms.h"

#include "base/error.h"

#include <ATen/ATen.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace sotto::data {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

// More than one chunk of varied images.
at::Tensor sample_images() {
  const at::Tensor ramp = at::arange(600 * 3 * 12 * 12) * 31 % 256;
  return ramp.to(at::kByte).view({600, 3, 12, 12});
}

at::Tensor transformed(const char* name, const at::Tensor& images) {
  return apply_transform(name, images).to(at::kLong);
}

double variance(const at::Tensor& images) {
  return images.to(at::kDouble).var(false).item<double>();
}

TEST(Transforms, KeepShapeAndTypeAndAreDeterministic) {
  const at::Tensor images = sample_images();
  const at::Tensor before = images.clone();
  for (const std::string& name : transform_names()) {
    const at::Tensor once = apply_transform(name, images);
    EXPECT_EQ(once.sizes(), images.sizes()) << name;
    EXPECT_EQ(once.scalar_type(), at::kByte) << name;
    EXPECT_TRUE(at::equal(once, apply_transform(name, images))) << name;
    EXPECT_EQ(at::equal(once, images), name == "plain") << name;
    EXPECT_TRUE(at::equal(images, before)) << name << " changed its argument";
    EXPECT_EQ(apply_transform(name, images.slice(0, 0, 0)).size(0), 0) << name;
  }
}

TEST(Transforms, AreDistinct) {
  const at::Tensor images = sample_images();
  const auto names = transform_names();
  for (size_t a = 0; a < names.size(); ++a) {
    for (size_t b = 0; b < a; ++b) {
      EXPECT_FALSE(at::equal(apply_transform(names[a], images), apply_transform(names[b], images)))
          << names[a] << " = " << names[b];
    }
  }
}

TEST(Transforms, InvertedAndMirroredUndoThemselves) {
  const at::Tensor images = sample_images();
  EXPECT_TRUE(at::equal(transformed("inverted", images), 255 - images.to(at::kLong)));
  EXPECT_TRUE(at::equal(apply_transform("mirrored", apply_transform("mirrored", images)), images));
}

TEST(Transforms, RotatedIsAQuarterTurnAnticlockwise) {
  at::Tensor image = at::zeros({1, 1, 4, 4}, at::kByte);
  image[0][0][0][3] = 255;
  EXPECT_EQ(apply_transform("rotated", image)[0][0][0][0].item<int64_t>(), 255);
  at::Tensor turned = sample_images();
  for (int i = 0; i < 4; ++i) turned = apply_transform("rotated", turned);
  EXPECT_TRUE(at::equal(turned, sample_images()));
}

TEST(Transforms, EdgesAreWhereTheImageChanges) {
  at::Tensor image = at::zeros({1, 1, 8, 8}, at::kByte);
  image.slice(3, 4).fill_(200);
  const at::Tensor edges = transformed("edges", image)[0][0];
  EXPECT_TRUE((edges.slice(1, 3, 5) == 200).all().item<bool>());
  EXPECT_EQ(edges.sum().item<int64_t>(), 8 * 2 * 200);
}

TEST(Transforms, BlurSpreadsAPointEvenlyAndKeepsItsSum) {
  at::Tensor image = at::zeros({1, 1, 33, 33}, at::kByte);
  image.slice(2, 12, 21).slice(3, 12, 21).fill_(250);
  const at::Tensor blurred = transformed("blurred", image)[0][0];
  EXPECT_NEAR(blurred.sum().item<double>(), 81.0 * 250.0, 81.0 * 250.0 * 0.02);
  EXPECT_TRUE(at::equal(blurred, blurred.flip(0)));
  EXPECT_TRUE(at::equal(blurred, blurred.t()));
  EXPECT_GT(blurred[16][10].item<int64_t>(), 0);
  EXPECT_EQ(blurred[0][0].item<int64_t>(), 0);
}

TEST(Transforms, PixelatedHasEightCellsASide) {
  const at::Tensor image = (at::arange(16 * 16) % 251).to(at::kByte).view({1, 1, 16, 16});
  const at::Tensor pixelated = transformed("pixelated", image)[0][0];
  EXPECT_TRUE(at::equal(pixelated.slice(0, 0, 16, 2), pixelated.slice(0, 1, 16, 2)));
  EXPECT_TRUE(at::equal(pixelated.slice(1, 0, 16, 2), pixelated.slice(1, 1, 16, 2)));
}

TEST(Transforms, LowContrastAndNoiseChangeTheVarianceAsTheySay) {
  const at::Tensor images = sample_images();
  EXPECT_NEAR(variance(transformed("low-contrast", images)), 0.09 * variance(images), 0.01 * variance(images));
  const at::Tensor grey = at::full({300, 1, 20, 20}, 128, at::kByte);
  const at::Tensor noisy = transformed("noisy", grey);
  EXPECT_NEAR(noisy.to(at::kDouble).mean().item<double>(), 128.0, 1.0);
  EXPECT_NEAR(std::sqrt(variance(noisy)), 58.0, 3.0);  // 60, less what is cut off
  EXPECT_FALSE(at::equal(noisy[0], noisy[1]));
  EXPECT_FALSE(at::equal(noisy.slice(0, 0, 44), noisy.slice(0, 256, 300)));
}

TEST(Transforms, WorkOnImagesOfOnePixel) {
  const at::Tensor pixel = at::full({2, 3, 1, 1}, 9, at::kByte);
  for (const std::string& name : transform_names()) EXPECT_EQ(apply_transform(name, pixel).sizes(), pixel.sizes());
}

TEST(Transforms, RefuseWhatTheyCannotDo) {
  EXPECT_THAT([] { apply_transform("blured", sample_images()); }, ThrowsMessage<UserError>(HasSubstr("'blurred'")));
  EXPECT_THAT([] { apply_transform("edges", at::zeros({2, 5})); }, ThrowsMessage<UserError>(HasSubstr("images only")));
  EXPECT_THAT(
      [] {
        apply_transform("rotated", at::zeros({1, 1, 4, 6}, at::kByte));
      },
      ThrowsMessage<UserError>(HasSubstr("data.image_size")));
}

}  // namespace
}  // namespace sotto::data
