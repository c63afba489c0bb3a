#include "models/fixed/hog.h"

#include "../support/expect_user_error.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

#include <gtest/gtest.h>

#include <cmath>

namespace sotto::models {
namespace {

at::Tensor hog_of(const at::Tensor& image) {
  const at::Tensor pixels = image.contiguous();
  const HogShape shape(pixels.size(0), pixels.size(1), pixels.size(2));
  at::Tensor features = at::full({shape.floats()}, 7.0F);
  hog(shape, pixels.data_ptr<float>(), features.data_ptr<float>());
  return features.reshape({shape.rows - 1, shape.columns - 1, 2, 2, HogShape::kBins});
}

at::Tensor noise(at::IntArrayRef shape) {
  at::Tensor image = at::empty(shape);
  return image.uniform_(-1, 1, at::detail::createCPUGenerator(3));
}

TEST(Hog, CutsAnImageIntoAboutEightCells) {
  const HogShape digits(1, 28, 28), photos(3, 224, 224), odd(3, 30, 47);
  EXPECT_EQ(digits.cell, 4);
  EXPECT_EQ(digits.floats(), 6 * 6 * 36);
  EXPECT_EQ(photos.cell, 28);
  EXPECT_EQ(photos.floats(), 7 * 7 * 36);
  EXPECT_EQ(odd.rows, 7);
  EXPECT_EQ(odd.columns, 11);
  EXPECT_USER_ERROR(HogShape(1, 7, 28), "at least 8×8 pixels");
}

// Grey that rises from left to right: all gradients point along rows, halfway between the last bin and the first.
TEST(Hog, OfARampIsKnown) {
  const double slope = 0.05;
  const at::Tensor ramp = (at::arange(32, at::kFloat) * slope - 0.8).expand({1, 32, 32});
  const at::Tensor block = hog_of(ramp)[3][3];
  // Each of four cells has two equal entries of 2·slope/2, which is their pixels' mean gradient halved.
  const double norm = std::sqrt(8.0) * slope, faded = norm / std::sqrt(norm * norm + 0.02 * 0.02);
  for (int64_t bin = 0; bin < HogShape::kBins; ++bin) {
    const double expected = bin == 0 || bin == 8 ? faded / std::sqrt(8.0) / 7 : 0;
    for (int64_t cell = 0; cell < 4; ++cell) {
      EXPECT_NEAR(block[cell / 2][cell % 2][bin].item<double>(), expected, 1e-5) << cell << " " << bin;
    }
  }
}

TEST(Hog, DoesNotDependOnBrightnessAndHardlyOnContrast) {
  const at::Tensor image = noise({1, 28, 28}) * 0.5, features = hog_of(image);
  EXPECT_TRUE(at::allclose(hog_of(image + 0.25), features, 1e-4, 1e-5));
  EXPECT_TRUE(at::allclose(hog_of(image * 2), features, 5e-3, 1e-5));
  EXPECT_FALSE(at::allclose(hog_of(image.transpose(1, 2)), features, 1e-2, 1e-3));
}

TEST(Hog, OfAMirroredImageIsMirrored) {
  const at::Tensor image = noise({1, 28, 28});
  EXPECT_TRUE(at::allclose(hog_of(image.flip({2})), hog_of(image).flip({1, 3, 4}), 1e-4, 1e-5));
  EXPECT_TRUE(at::allclose(hog_of(image.flip({1})), hog_of(image).flip({0, 2, 4}), 1e-4, 1e-5));
  EXPECT_TRUE(at::allclose(hog_of(-image), hog_of(image), 1e-4, 1e-5)) << "directions are of half a turn";
}

TEST(Hog, TheSteepestChannelVotes) {
  const at::Tensor grey = noise({1, 32, 32});
  EXPECT_TRUE(hog_of(grey.expand({3, 32, 32})).equal(hog_of(grey)));
  EXPECT_TRUE(hog_of(at::cat({grey * 0.5, grey, grey * 0.1})).equal(hog_of(grey)));
}

TEST(Hog, HasANormOfAtMostOneAndNoneForABlankImage) {
  const double norm = hog_of(noise({3, 64, 64})).norm().item<double>();
  EXPECT_LE(norm, 1 + 1e-5);
  EXPECT_GT(norm, 0.9);
  EXPECT_EQ(hog_of(at::full({1, 28, 28}, 0.3F)).abs().max().item<float>(), 0.0F);
}

}  // namespace
}  // namespace sotto::models
