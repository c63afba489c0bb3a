#include "report/partition_picture.h"

#include "base/error.h"
#include "read_png.h"

namespace sotto::report {
namespace {

PartitionSummary summary(const at::Tensor& counts) {
  PartitionSummary result{"a partition", counts, {}, counts.size(0)};
  for (int64_t c = 0; c < counts.size(1); ++c) result.class_names.push_back(fmt::format("class {}", c));
  return result;
}

at::Tensor draw(const at::Tensor& counts) {
  const TemporaryFolder folder;
  write_partition_picture(folder / "picture.png", summary(counts));
  return read_png(folder / "picture.png", PNG_FORMAT_RGB, 3).to(at::kLong);
}

// Pixels of the colour of discs and of full cells.
int64_t deep_pixels(const at::Tensor& picture) {
  const at::Tensor deep = at::tensor({23, 69, 115}, at::kLong);
  return ((picture - deep).abs().amax(2) <= 2).sum().item<int64_t>();
}

TEST(PartitionPicture, AreaOfDiscsFollowsTheCounts) {
  // The largest count fixes the scale: a class that is held in full by one client, then by two.
  const at::Tensor none = at::zeros({4, 3}, at::kLong);
  at::Tensor one = none.clone();
  one[0][0] = 100;
  at::Tensor two = one.clone();
  two[1][2] = 100;
  const int64_t legend = deep_pixels(draw(none));
  const int64_t first = deep_pixels(draw(one));
  const int64_t second = deep_pixels(draw(two));
  EXPECT_GT(first, legend);
  at::Tensor quarter = one.clone();
  quarter[1][2] = 25;
  const auto full_disc = static_cast<double>(second - first);
  EXPECT_NEAR(static_cast<double>(deep_pixels(draw(quarter)) - first), full_disc / 4.0, full_disc / 20.0);
}

TEST(PartitionPicture, ManyCellsAreShaded) {
  const at::Tensor counts = at::full({100, 100}, 7, at::kLong);
  const at::Tensor picture = draw(counts);
  EXPECT_GT(deep_pixels(picture), 1'000'000);  // every cell is a full one
  EXPECT_LT(picture.size(0), 4000);
  EXPECT_LT(picture.size(1), 4000);
}

TEST(PartitionPicture, StaysBoundedForVeryManyClientsAndClasses) {
  const at::Tensor picture = draw(at::ones({3000, 400}, at::kLong));
  EXPECT_LT(picture.size(0), 4000);
  EXPECT_LT(picture.size(1), 4000);
}

TEST(PartitionPicture, OneClientOneClassIsDrawn) {
  EXPECT_GT(deep_pixels(draw(at::ones({1, 1}, at::kLong))), 0);
}

TEST(PartitionPicture, UnwritableFolderIsTheUsersError) {
  const TemporaryFolder folder;
  EXPECT_THROW(write_partition_picture(folder / "missing" / "p.png", summary(at::ones({2, 2}, at::kLong))), UserError);
}

}  // namespace
}  // namespace sotto::report
