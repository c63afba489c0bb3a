#include "../data/make_files.h"
#include "../support/expect_user_error.h"
#include "io/images/decode.h"
#include "io/images/jpeg.h"
#include "io/images/png.h"
#include "io/images/resample.h"

#include <ATen/ATen.h>

#include <gtest/gtest.h>

namespace sotto::io {
namespace {

using namespace sotto::test;
using Bytes = std::vector<uint8_t>;

void expect_near(const Image& image, const std::vector<int>& colour, int tolerance) {
  ASSERT_EQ(image.channels, static_cast<int64_t>(colour.size()));
  for (size_t i = 0; i < image.pixels.size(); ++i)
    ASSERT_NEAR(image.pixels[i], colour[i % colour.size()], tolerance) << i;
}

at::Tensor decode_all(const std::vector<std::string>& files, int64_t size) {
  return decode_images({static_cast<int64_t>(files.size()), [&](int64_t i) { return files[static_cast<size_t>(i)]; },
                        [](int64_t i) { return "image " + std::to_string(i); }},
                       size, "test");
}

TEST(Png, DecodesGreyAndRgbExactly) {
  const Bytes grey{0, 10, 200, 255, 7, 9};
  EXPECT_EQ(decode_png(png_bytes(3, 2, 1, grey), 1, "x").pixels, grey);
  const Bytes rgb{1, 2, 3, 250, 251, 252};
  EXPECT_EQ(decode_png(png_bytes(2, 1, 3, rgb), 3, "x").pixels, rgb);
  EXPECT_EQ(decode_png(png_bytes(3, 2, 1, grey), 3, "x").pixels.size(), 18u);
}

TEST(Png, LaysTransparencyOverWhite) {
  const Image image = decode_png(png_bytes(2, 1, 4, {10, 20, 30, 255, 10, 20, 30, 0}), 3, "x");
  EXPECT_EQ(image.pixels, (Bytes{10, 20, 30, 255, 255, 255}));
  const Image grey = decode_png(png_bytes(2, 1, 2, {40, 255, 40, 0}), 1, "x");
  EXPECT_EQ(grey.pixels, (Bytes{40, 255}));
}

TEST(Png, HandlesSixteenBitsAndPalettes) {
  const Image deep = decode_png(png16_bytes(3, 1, {0, 0x8080, 0xFFFF}), 1, "x");
  EXPECT_EQ(deep.pixels[0], 0);
  EXPECT_NEAR(deep.pixels[1], 128, 1);
  EXPECT_EQ(deep.pixels[2], 255);
  const std::string palette = palette_png_bytes(2, 1, {1, 0}, {{9, 8, 7}, {200, 100, 50}});
  EXPECT_EQ(probe_png(palette, "x").channels, 3);
  EXPECT_EQ(decode_png(palette, 3, "x").pixels, (Bytes{200, 100, 50, 9, 8, 7}));
}

TEST(Jpeg, DecodesGreyRgbAndCmyk) {
  expect_near(decode_jpeg(jpeg_bytes(16, 8, {90}), 1, 0, "x"), {90}, 2);
  expect_near(decode_jpeg(jpeg_bytes(16, 8, {90}), 3, 0, "x"), {90, 90, 90}, 2);
  expect_near(decode_jpeg(jpeg_bytes(16, 8, {200, 40, 90}), 3, 0, "x"), {200, 40, 90}, 3);
  EXPECT_EQ(probe_jpeg(jpeg_bytes(16, 8, {90}), "x").channels, 1);
  const std::string cmyk = jpeg_bytes(16, 8, {255, 128, 0, 255});
  EXPECT_EQ(probe_jpeg(cmyk, "x").channels, 3);
  expect_near(decode_jpeg(cmyk, 3, 0, "x"), {255, 128, 0}, 4);
  expect_near(decode_jpeg(cmyk, 1, 0, "x"), {151}, 4);
}

TEST(Jpeg, ShrinksNoFurtherThanAsked) {
  const std::string jpeg = jpeg_bytes(400, 320, {10, 20, 30});
  const Image image = decode_jpeg(jpeg, 3, 64, "x");
  EXPECT_EQ(image.width, 100);
  EXPECT_EQ(image.height, 80);
  EXPECT_EQ(decode_jpeg(jpeg, 3, 0, "x").width, 400);
}

TEST(Images, TruncatedAndForeignFilesAreUserErrors) {
  Bytes noise(64 * 64 * 3);
  for (size_t i = 0; i < noise.size(); ++i) noise[i] = static_cast<uint8_t>(i * 7919 >> 3);
  const std::string png = png_bytes(64, 64, 3, noise);
  const std::string jpeg = jpeg_bytes(128, 128, {10, 200, 30});
  EXPECT_USER_ERROR(decode_png(png.substr(0, png.size() / 2), 3, "a.png"), "a.png is a truncated or corrupt PNG");
  EXPECT_USER_ERROR(probe_png(png.substr(0, 20), "a.png"), "a.png is a truncated or corrupt PNG");
  EXPECT_USER_ERROR(decode_jpeg(jpeg.substr(0, jpeg.size() * 3 / 4), 3, 0, "a.jpg"),
                    "a.jpg is a truncated or corrupt JPEG");
  EXPECT_USER_ERROR(probe_jpeg(jpeg.substr(0, 30), "a.jpg"), "a.jpg is a truncated or corrupt JPEG");
  EXPECT_USER_ERROR(decode_all({png, "GIF89a…"}, 0), "image 1 is neither a PNG nor a JPEG");
}

TEST(Resample, KeepsConstantImagesAndIdentity) {
  const at::Tensor constant = at::full({2, 3, 37, 53}, 131, at::kByte);
  for (const int64_t size : {1, 8, 37, 90}) {
    const at::Tensor resized = resize_images(constant, size);
    EXPECT_EQ(resized.sizes(), (at::IntArrayRef{2, 3, size, size}));
    EXPECT_TRUE((resized == 131).all().item<bool>()) << size;
  }
  const at::Tensor same = at::arange(64).to(at::kByte).view({1, 1, 8, 8});
  EXPECT_TRUE(at::equal(resize_images(same, 8), same));
}

TEST(Resample, ShrinkingAveragesAndEnlargingInterpolates) {
  // Alternating columns average to the middle: no aliasing.
  at::Tensor stripes = at::zeros({1, 1, 64, 64}, at::kByte);
  stripes.slice(3, 0, 64, 2).fill_(200);
  const at::Tensor shrunk = resize_images(stripes, 8);
  EXPECT_NEAR(shrunk.to(at::kFloat).mean().item<float>(), 100, 3);
  EXPECT_LE((shrunk.to(at::kLong) - 100).abs().max().item<int64_t>(), 13);
  const at::Tensor edge = at::tensor({0, 100, 0, 100}, at::kByte).view({1, 1, 2, 2});
  const at::Tensor enlarged = resize_images(edge, 4);
  EXPECT_EQ(enlarged[0][0][0][0].item<int>(), 0);
  EXPECT_EQ(enlarged[0][0][0][1].item<int>(), 25);
  EXPECT_EQ(enlarged[0][0][0][2].item<int>(), 75);
  EXPECT_EQ(enlarged[0][0][0][3].item<int>(), 100);
}

TEST(Resample, AgreesWithLibtorchBilinearWhenEnlarging) {
  const at::Tensor image = at::randint(0, 256, {1, 3, 7, 11}, at::kByte);
  const at::Tensor ours = resize_images(image, 20).to(at::kFloat);
  const at::Tensor theirs = at::upsample_bilinear2d(image.to(at::kFloat), {20, 20}, false);
  EXPECT_LE((ours - theirs).abs().max().item<float>(), 0.51F);
}

TEST(DecodeImages, KeepsACommonSizeAndOtherwiseUsesTheDefault) {
  EXPECT_EQ(decode_all({plain_png(5, 4, {1}), plain_png(5, 4, {2})}, 0).sizes(), (at::IntArrayRef{2, 1, 4, 5}));
  EXPECT_EQ(decode_all({plain_png(5, 4, {1}), plain_png(4, 5, {2})}, 0).sizes(),
            (at::IntArrayRef{2, 1, kDefaultSize, kDefaultSize}));
  EXPECT_EQ(decode_all({plain_png(5, 4, {1})}, 9).sizes(), (at::IntArrayRef{1, 1, 9, 9}));
}

TEST(DecodeImages, OneColourImageMakesAllRgb) {
  const at::Tensor x = decode_all({plain_png(4, 4, {77}), plain_png(4, 4, {1, 2, 3})}, 0);
  EXPECT_EQ(x.size(1), 3);
  EXPECT_TRUE((x[0] == 77).all().item<bool>());
  EXPECT_TRUE((x[1][2] == 3).all().item<bool>());
}

TEST(AsRgb, RepeatsTheGreyChannel) {
  const at::Tensor grey = at::randint(0, 256, {2, 1, 3, 3}, at::kByte);
  const at::Tensor rgb = as_rgb(grey);
  EXPECT_TRUE(rgb.is_contiguous());
  for (int c = 0; c < 3; ++c) EXPECT_TRUE(at::equal(rgb.select(1, c), grey.select(1, 0)));
}

}  // namespace
}  // namespace sotto::io
