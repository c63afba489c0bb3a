#include "models/fixed/scattering.h"

#include "../support/expect_user_error.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <numbers>
#include <vector>

namespace sotto::models {
namespace {

constexpr int64_t kAll = Scattering::kDirections;

at::Tensor noise(at::IntArrayRef shape) {
  at::Tensor image = at::empty(shape);
  return image.uniform_(-1, 1, at::detail::createCPUGenerator(3));
}

at::Tensor coefficients(const at::Tensor& x) {
  return Scattering(x.size(1), x.size(2), x.size(3)).coefficients(x);
}

at::Tensor features(const at::Tensor& x) {
  return Scattering(x.size(1), x.size(2), x.size(3)).features(x);
}

TEST(Scattering, HasAFewThousandNumbers) {
  EXPECT_EQ(Scattering(1, 28, 28).floats(), (1 + 16 + 64) * 7 * 7);
  EXPECT_EQ(Scattering(3, 32, 32).floats(), (3 * 17 + 64) * 8 * 8);
  EXPECT_EQ(Scattering(3, 224, 224).floats(), (3 * 25 + 3 * 64) * 8 * 8);
  for (const int64_t side : {16, 28, 33, 50, 64, 224}) {
    const at::Tensor found = features(noise({2, 3, side, side}));
    EXPECT_EQ(found.size(1), Scattering(3, side, side).floats()) << side;
    EXPECT_TRUE(at::isfinite(found).all().item<bool>());
  }
  EXPECT_USER_ERROR(Scattering(1, 15, 28), "at least 16×16 pixels");
}

// Loops over pixels, in doubles, for one direction of the first octave.
double first_order(const at::Tensor& image, int64_t direction, int64_t row, int64_t column) {
  const int64_t side = image.size(0);
  const auto inside = [&](int64_t i, int64_t size) { return i < 0 ? -i : (i >= size ? 2 * size - 2 - i : i); };
  const double angle = std::numbers::pi * static_cast<double>(direction) / 8, frequency = 0.75 * std::numbers::pi;
  const auto envelope = [&](int64_t i, int64_t j) {
    const double x = static_cast<double>(j), y = static_cast<double>(i);
    const double along = x * std::cos(angle) + y * std::sin(angle), across = y * std::cos(angle) - x * std::sin(angle);
    return std::exp(-(along * along + across * across / 4) / (2 * 0.64));
  };
  const auto wave = [&](int64_t i, int64_t j) {
    return frequency * (static_cast<double>(j) * std::cos(angle) + static_cast<double>(i) * std::sin(angle));
  };
  double total = 0, mean = 0;
  for (int64_t i = -4; i <= 4; ++i) {
    for (int64_t j = -4; j <= 4; ++j) {
      total += envelope(i, j);
      mean += envelope(i, j) * std::cos(wave(i, j));
    }
  }
  const auto modulus = [&](int64_t r, int64_t c) {
    double real = 0, imaginary = 0;
    for (int64_t i = -4; i <= 4; ++i) {
      for (int64_t j = -4; j <= 4; ++j) {
        const double pixel = image[inside(r + i, side)][inside(c + j, side)].item<double>() * envelope(i, j) / total;
        real += pixel * (std::cos(wave(i, j)) - mean / total);
        imaginary += pixel * std::sin(wave(i, j));
      }
    }
    return std::hypot(real, imaginary);
  };
  const double binomial[] = {1, 5, 10, 10, 5, 1};
  const std::function<double(int64_t, int64_t, int64_t)> halved = [&](int64_t times, int64_t r, int64_t c) {
    if (times == 0) return modulus(r, c);
    const int64_t size = side >> (times - 1);
    double sum = 0;
    for (int64_t i = 0; i < 6; ++i) {
      for (int64_t j = 0; j < 6; ++j) {
        sum += binomial[i] * binomial[j] / 1024 *
               halved(times - 1, inside(2 * r + i - 2, size), inside(2 * c + j - 2, size));
      }
    }
    return sum;
  };
  return halved(2, row, column);
}

TEST(Scattering, OfTheFirstOrderIsAnAveragedModulus) {
  const at::Tensor image = noise({1, 1, 16, 16}), found = coefficients(image);
  for (const int64_t direction : {0, 3}) {
    EXPECT_NEAR(found[0][1 + direction][0][2].item<double>(), first_order(image[0][0], direction, 0, 2), 1e-5);
  }
}

TEST(Scattering, OfAConstantIsTheConstant) {
  const at::Tensor found = coefficients(at::full({1, 1, 28, 28}, 0.5F));
  EXPECT_TRUE(at::allclose(found.narrow(1, 0, 1), at::full({1, 1, 7, 7}, 0.5F)));
  EXPECT_LT(found.narrow(1, 1, found.size(1) - 1).abs().max().item<double>(), 1e-5);
}

TEST(Scattering, SeesTheDirectionOfAWave) {
  const at::Tensor wave = (at::arange(32, at::kFloat) * (0.75 * std::numbers::pi)).cos().expand({32, 32});
  for (const bool upright : {true, false}) {
    const at::Tensor image = (upright ? wave : wave.t()).reshape({1, 1, 32, 32});
    const at::Tensor first = coefficients(image)[0].narrow(0, 1, kAll).mean({1, 2});
    EXPECT_EQ(first.argmax().item<int64_t>(), upright ? 0 : kAll / 2) << first;
  }
}

TEST(Scattering, IsProportionalToContrastAndFeaturesAreNot) {
  const at::Tensor image = noise({1, 3, 32, 32}) * 0.5;
  EXPECT_TRUE(at::allclose(coefficients(image * 2), coefficients(image) * 2, 1e-4, 1e-5));
  EXPECT_TRUE(at::allclose(features(image * 2), features(image), 1e-2, 1e-5));
}

// Mirroring turns direction d into -d, which is directions - d in half a turn.
TEST(Scattering, OfAMirroredImageIsMirrored) {
  const at::Tensor image = noise({1, 1, 32, 32});
  std::vector<int64_t> opposite;
  for (int64_t d = 0; d < kAll; ++d) opposite.push_back((kAll - d) % kAll);
  const at::Tensor turned = at::tensor(opposite, at::kLong);
  const at::Tensor found = coefficients(image)[0].flip({2}), mirrored = coefficients(image.flip({3}))[0];
  const auto first = [&](const at::Tensor& all) { return all.narrow(0, 1, 2 * kAll).reshape({2, kAll, 8, 8}); };
  const auto second = [&](const at::Tensor& all) { return all.narrow(0, 17, 64).reshape({kAll, kAll, 8, 8}); };
  EXPECT_TRUE(at::allclose(first(mirrored), first(found).index_select(1, turned), 1e-4, 1e-5));
  EXPECT_TRUE(
      at::allclose(second(mirrored), second(found).index_select(0, turned).index_select(1, turned), 1e-4, 1e-5));
}

TEST(Scattering, HardlyMovesWithAShiftByAPixel) {
  const at::Tensor wide = at::avg_pool2d(noise({1, 1, 36, 36}), 3, 1);
  const at::Tensor image = wide.narrow(3, 0, 32).narrow(2, 0, 32), shifted = wide.narrow(3, 1, 32).narrow(2, 0, 32);
  const auto moved = [](const at::Tensor& a, const at::Tensor& b) {
    return ((a - b).norm() / a.norm()).item<double>();
  };
  EXPECT_LT(moved(features(image), features(shifted)), 0.5 * moved(image, shifted));
}

TEST(Scattering, DependsOnAnImageAlone) {
  const at::Tensor images = noise({5, 3, 28, 28});
  EXPECT_TRUE(at::allclose(features(images)[4], features(images.narrow(0, 4, 1))[0], 1e-5, 1e-6));
  EXPECT_LE(features(images).norm(2, {1}).max().item<double>(), 1 + 1e-5);
  EXPECT_EQ(features(at::zeros({1, 1, 28, 28})).abs().max().item<float>(), 0.0F);
}

}  // namespace
}  // namespace sotto::models
