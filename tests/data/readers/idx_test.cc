#include "data/readers/idx.h"

#include "../../support/expect_user_error.h"
#include "../../support/temp_folder.h"
#include "../make_files.h"

#include <ATen/ATen.h>

#include <gtest/gtest.h>

#include <filesystem>

namespace sotto::data {
namespace {

using namespace sotto::test;

std::string images(uint32_t count) {
  std::vector<uint8_t> pixels;
  for (uint32_t i = 0; i < count * 6; ++i) pixels.push_back(static_cast<uint8_t>(i));
  return idx_bytes({count, 2, 3}, pixels);
}

void write_dataset(const TempFolder& folder, bool gz) {
  const auto put = [&](const std::string& name, const std::string& bytes) {
    write_bytes(folder / (gz ? name + ".gz" : name), gz ? gzipped(bytes) : bytes);
  };
  put("train-images-idx3-ubyte", images(4));
  put("train-labels-idx1-ubyte", idx_bytes({4}, {0, 1, 2, 1}));
  put("t10k-images-idx3-ubyte", images(2));
  put("t10k-labels-idx1-ubyte", idx_bytes({2}, {2, 0}));
}

TEST(Idx, ReadsPlainAndGzipped) {
  for (const bool gz : {false, true}) {
    const TempFolder folder;
    write_dataset(folder, gz);
    const FileTree tree = FileTree::open(folder.path());
    EXPECT_TRUE(is_idx(tree));
    const Dataset dataset = read_idx(tree, "made");
    EXPECT_EQ(dataset.train.x.sizes(), (at::IntArrayRef{4, 1, 2, 3}));
    EXPECT_EQ(dataset.train.x[1][0][0][0].item<int>(), 6);
    EXPECT_TRUE(at::equal(dataset.train.y, at::tensor({0, 1, 2, 1}, at::kLong)));
    EXPECT_EQ(dataset.test.size(), 2);
    EXPECT_EQ(dataset.class_names, (std::vector<std::string>{"0", "1", "2"}));
    EXPECT_EQ(dataset.domain_names, std::vector<std::string>{"made"});
  }
}

TEST(Idx, TestFilesMayBeMissing) {
  const TempFolder folder;
  write_bytes(folder / "train-images.idx3-ubyte", images(3));
  write_bytes(folder / "train-labels.idx1-ubyte", idx_bytes({3}, {0, 1, 0}));
  EXPECT_EQ(read_idx(FileTree::open(folder.path()), "made").test.size(), 0);
}

TEST(Idx, RefusesBadFiles) {
  const TempFolder folder;
  write_dataset(folder, false);
  const auto expect = [&](const std::string& file, const std::string& bytes, const std::string& part) {
    write_dataset(folder, false);
    write_bytes(folder / file, bytes);
    EXPECT_USER_ERROR(read_idx(FileTree::open(folder.path()), "made"), part);
  };
  const std::string train = "train-images-idx3-ubyte";
  expect(train, images(4).substr(0, 30), "is truncated: 14 bytes of data where its header announces 24");
  expect(train, images(4) + "x", "is corrupt");
  expect(train, images(4).substr(0, 9), "header is incomplete");
  expect(train, "hello", "not an IDX file");
  expect(train, "", "not an IDX file");
  expect(train, idx_bytes({0, 2, 3}, {}), "is empty");
  expect(train, idx_bytes({0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF}, {}), "truncated");
  expect(train, images(3), "has 3 images but");
  expect(train, idx_bytes({4}, {1, 2, 3, 4}), "holds no grey images");
  expect("train-labels-idx1-ubyte", images(4), "holds no labels");
  expect("t10k-labels-idx1-ubyte", idx_bytes({2}, {0, 9}), "label 9 is out of range");
  std::filesystem::remove(folder / "t10k-labels-idx1-ubyte");
  EXPECT_USER_ERROR(read_idx(FileTree::open(folder.path()), "made"), "not both");
  EXPECT_USER_ERROR(read_idx(FileTree::open(folder.path()), "made", {"one", "two"}), "not both");
}

TEST(Idx, LabelsBeyondTheClassNamesAreRefused) {
  const TempFolder folder;
  write_dataset(folder, false);
  EXPECT_USER_ERROR(read_idx(FileTree::open(folder.path()), "made", {"one", "two"}), "record 2: label 2");
}

}  // namespace
}  // namespace sotto::data
