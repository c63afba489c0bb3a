#include "report/png.h"

#include "base/error.h"
#include "read_png.h"

namespace sotto::report {
namespace {

at::Tensor numbered(at::IntArrayRef shape) {
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  return (at::arange(count) * 7 % 256).to(at::kByte).view(shape);
}

TEST(WritePng, KeepsEveryPixelOfGreyColourAndTransparency) {
  const TemporaryFolder folder;
  const std::pair<int64_t, png_uint_32> formats[] = {{1, PNG_FORMAT_GRAY}, {3, PNG_FORMAT_RGB}, {4, PNG_FORMAT_RGBA}};
  for (const auto& [channels, format] : formats) {
    const at::Tensor image = numbered({5, 7, channels});
    write_png(folder / "image.png", image);
    EXPECT_TRUE(at::equal(read_png(folder / "image.png", format, channels), image)) << channels << " channels";
  }
}

TEST(WritePng, TakesAnyStrides) {
  const TemporaryFolder folder;
  const at::Tensor image = numbered({3, 5, 7}).permute({1, 2, 0});
  write_png(folder / "image.png", image);
  EXPECT_TRUE(at::equal(read_png(folder / "image.png", PNG_FORMAT_RGB, 3), image));
}

TEST(WritePng, UnwritableFolderIsTheUsersError) {
  const TemporaryFolder folder;
  EXPECT_THROW(write_png(folder / "missing" / "image.png", numbered({2, 2, 3})), UserError);
}

TEST(ImageGrid, PlacesImagesRowByRow) {
  const at::Tensor images = numbered({5, 3, 4, 6});
  const at::Tensor grid = image_grid(images, 3, 2);
  ASSERT_EQ(grid.sizes(), at::IntArrayRef({2 * (4 + 2) + 2, 3 * (6 + 2) + 2, 3}));
  const at::Tensor fifth = grid.narrow(0, 8, 4).narrow(1, 10, 6);
  EXPECT_TRUE(at::equal(fifth, images[4].permute({1, 2, 0})));
}

TEST(ImageGrid, LeavesGapsAndMissingImagesWhite) {
  const at::Tensor grid = image_grid(at::zeros({3, 1, 2, 2}, at::kByte), 2, 1);
  EXPECT_EQ((grid == 0).sum().item<int64_t>(), 3 * 4);
  EXPECT_EQ((grid == 255).sum().item<int64_t>(), grid.numel() - 3 * 4);
}

}  // namespace
}  // namespace sotto::report
