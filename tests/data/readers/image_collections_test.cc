// Image folders, images with a table of labels, and Tiny-ImageNet's layout.
#include "../../support/expect_user_error.h"
#include "../../support/temp_folder.h"
#include "../make_files.h"
#include "data/readers/image_folder.h"
#include "data/readers/labelled_images.h"
#include "data/readers/tiny_imagenet.h"

#include <ATen/ATen.h>

#include <gtest/gtest.h>

#include <filesystem>
#include <map>

namespace sotto::data {
namespace {

using namespace sotto::test;
using Names = std::vector<std::string>;

TEST(ImageFolder, DomainsAndClassesAreFolders) {
  const TempFolder folder;
  write_bytes(folder / "photo/cat/1.png", plain_png(6, 6, {10, 20, 30}));
  write_bytes(folder / "photo/dog/1.JPG", jpeg_bytes(40, 20, {200}));
  write_bytes(folder / "art/dog/x.jpeg", jpeg_bytes(16, 16, {0, 0, 250}));
  write_bytes(folder / "README.md", "not an image");
  const FileTree tree = FileTree::open(folder.path());
  ASSERT_TRUE(is_image_folder(tree));
  const Dataset dataset = read_image_folder(tree, "made", 0);
  EXPECT_EQ(dataset.domain_names, (Names{"art", "photo"}));
  EXPECT_EQ(dataset.class_names, (Names{"cat", "dog"}));
  EXPECT_EQ(dataset.train.x.sizes(), (at::IntArrayRef{3, 3, 32, 32}));
  EXPECT_TRUE(at::equal(dataset.train.y, at::tensor({1, 0, 1}, at::kLong)));
  EXPECT_TRUE(at::equal(dataset.train.domain, at::tensor({0, 1, 1}, at::kLong)));
  EXPECT_EQ(dataset.train.x[1][1][5][5].item<int>(), 20);
  EXPECT_NEAR(dataset.train.x[2][2][5][5].item<int>(), 200, 2);
  EXPECT_EQ(read_image_folder(tree, "made", 8).record_shape(), (std::vector<int64_t>{3, 8, 8}));
}

TEST(ImageFolder, ClassFoldersAloneAreOneDomain) {
  const TempFolder folder;
  write_bytes(folder / "x.tar.gz",
              tar_gz({{"top/b/1.png", plain_png(4, 4, {1})}, {"top/a/1.png", plain_png(4, 4, {2})}}));
  const Dataset dataset = read_image_folder(FileTree::open(folder / "x.tar.gz"), "made", 0);
  EXPECT_EQ(dataset.domain_names, Names{"made"});
  EXPECT_EQ(dataset.record_shape(), (std::vector<int64_t>{1, 4, 4}));
}

TEST(ImageFolder, TrainAndTestFoldersAreSplits) {
  const TempFolder folder;
  write_bytes(folder / "train/a/1.png", plain_png(4, 4, {1}));
  write_bytes(folder / "train/b/1.png", plain_png(4, 4, {2}));
  write_bytes(folder / "val/b/1.png", plain_png(4, 4, {3}));
  const Dataset dataset = read_image_folder(FileTree::open(folder.path()), "made", 0);
  EXPECT_EQ(dataset.train.size(), 2);
  ASSERT_EQ(dataset.test.size(), 1);
  EXPECT_EQ(dataset.test.y.item<int64_t>(), 1);
  EXPECT_EQ(dataset.test.x[0][0][0][0].item<int>(), 3);
}

TEST(ImageFolder, RefusesMixedDepthsNoImagesAndCorruptOnes) {
  const TempFolder folder;
  write_bytes(folder / "notes.txt", "x");
  EXPECT_USER_ERROR(read_image_folder(FileTree::open(folder.path()), "made", 0), "no PNG or JPEG");
  write_bytes(folder / "a/1.png", plain_png(4, 4, {1}));
  write_bytes(folder / "b/c/1.png", plain_png(4, 4, {1}));
  EXPECT_USER_ERROR(read_image_folder(FileTree::open(folder.path()), "made", 0), "class/ folders");
  std::filesystem::remove_all(folder / "b");
  write_bytes(folder / "a/2.png", plain_png(4, 4, {1}).substr(0, 40));
  EXPECT_USER_ERROR(read_image_folder(FileTree::open(folder.path()), "made", 0), "2.png");
}

std::map<std::string, std::string> labelled() {
  return {{"d/train.csv", "image_name,label\n0.png,2\n1.png,0\n"},
          {"d/train/0.png", plain_png(3, 3, {5})},
          {"d/train/1.png", plain_png(3, 3, {6})},
          {"d/test.csv", "image_name,label\n0.png,1\n"},
          {"d/test/0.png", plain_png(3, 3, {7})}};
}

TEST(LabelledImages, FollowsTheTable) {
  const TempFolder folder;
  write_bytes(folder / "d.tar.gz", tar_gz(labelled()));
  const FileTree tree = FileTree::open(folder / "d.tar.gz");
  ASSERT_TRUE(is_labelled_images(tree));
  const Dataset dataset = read_labelled_images(tree, "d", 0);
  EXPECT_TRUE(at::equal(dataset.train.y, at::tensor({2, 0}, at::kLong)));
  EXPECT_EQ(dataset.train.x[0][0][0][0].item<int>(), 5);
  EXPECT_EQ(dataset.test.x[0][0][0][0].item<int>(), 7);
  EXPECT_EQ(dataset.classes(), 3);
}

TEST(LabelledImages, NamesTheRowOfAMistake) {
  const TempFolder folder;
  const auto expect = [&](const std::string& table, const std::string& part) {
    auto files = labelled();
    files["d/train.csv"] = table;
    write_bytes(folder / "d.tar.gz", tar_gz(files));
    EXPECT_USER_ERROR(read_labelled_images(FileTree::open(folder / "d.tar.gz"), "d", 0), part);
  };
  expect("image_name,label\n9.png,1\n", "row 2: the image train/9.png");
  expect("image_name,label\n0.png,cat\n", "row 2: 'cat' is no label");
  expect("image_name,label\n0.png,-1\n", "row 2: '-1' is no label");
  expect("0.png\n", "two columns");
  expect("image_name,label\n", "no training images");
  expect("0.png,0\n", "label 1 is out of range");
}

std::map<std::string, std::string> tiny() {
  return {{"t/wnids.txt", "n2\nn1\n"},
          {"t/words.txt", "n1\tcat, feline\nn2\treel\n"},
          {"t/train/n1/images/n1_0.JPEG", jpeg_bytes(8, 8, {10})},
          {"t/train/n2/images/n2_0.JPEG", jpeg_bytes(8, 8, {20, 20, 20})},
          {"t/val/images/val_0.JPEG", jpeg_bytes(8, 8, {30})},
          {"t/val/val_annotations.txt", "val_0.JPEG\tn1\t0\t0\t1\t1\n"}};
}

TEST(TinyImagenet, ReadsItsLayout) {
  const TempFolder folder;
  write_bytes(folder / "t.tar.gz", tar_gz(tiny()));
  const FileTree tree = FileTree::open(folder / "t.tar.gz");
  ASSERT_TRUE(is_tiny_imagenet(tree));
  const Dataset dataset = read_tiny_imagenet(tree, "t", 0);
  EXPECT_EQ(dataset.class_names, (Names{"reel", "cat"}));
  EXPECT_TRUE(at::equal(dataset.train.y, at::tensor({1, 0}, at::kLong)));
  EXPECT_EQ(dataset.test.y.item<int64_t>(), 1);
  EXPECT_EQ(dataset.record_shape(), (std::vector<int64_t>{3, 8, 8}));
}

TEST(TinyImagenet, RefusesUnknownClassesAndMissingImages) {
  const TempFolder folder;
  const auto expect = [&](const std::string& file, const std::string& bytes, const std::string& part) {
    auto files = tiny();
    files[file] = bytes;
    write_bytes(folder / "t.tar.gz", tar_gz(files));
    EXPECT_USER_ERROR(read_tiny_imagenet(FileTree::open(folder / "t.tar.gz"), "t", 0), part);
  };
  expect("t/train/n9/images/a.JPEG", jpeg_bytes(8, 8, {1}), "no class of wnids.txt");
  expect("t/val/val_annotations.txt", "val_0.JPEG\tn7\n", "row 1: no known class");
  expect("t/val/val_annotations.txt", "val_5.JPEG\tn1\n", "row 1: the image");
  expect("t/wnids.txt", "", "wnids.txt");
}

}  // namespace
}  // namespace sotto::data
