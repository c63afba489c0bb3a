#include "data/readers/cifar.h"

#include "../../support/expect_user_error.h"
#include "../../support/temp_folder.h"
#include "../make_files.h"

#include <ATen/ATen.h>

#include <gtest/gtest.h>

namespace sotto::data {
namespace {

using namespace sotto::test;

std::string record(const std::string& labels, uint8_t red, uint8_t green, uint8_t blue) {
  std::string bytes = labels;
  for (const uint8_t value : {red, green, blue}) bytes.append(1024, static_cast<char>(value));
  return bytes;
}

std::string byte(int value) {
  return std::string(1, static_cast<char>(value));
}

TEST(Cifar10, ReadsBatchesInOrder) {
  const TempFolder folder;
  write_bytes(folder / "data_batch_2.bin", record(byte(9), 4, 5, 6));
  write_bytes(folder / "data_batch_1.bin", record(byte(3), 1, 2, 3) + record(byte(0), 7, 8, 9));
  write_bytes(folder / "test_batch.bin", record(byte(1), 0, 0, 0));
  write_bytes(folder / "batches.meta.txt", "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\n\n");
  const FileTree tree = FileTree::open(folder.path());
  ASSERT_TRUE(is_cifar10(tree));
  const Dataset dataset = read_cifar10(tree, "made");
  EXPECT_TRUE(at::equal(dataset.train.y, at::tensor({3, 0, 9}, at::kLong)));
  EXPECT_EQ(dataset.train.x[0][2][31][31].item<int>(), 3);
  EXPECT_EQ(dataset.train.x[2][0][0][0].item<int>(), 4);
  EXPECT_EQ(dataset.test.size(), 1);
  EXPECT_EQ(dataset.class_names[9], "j");
}

TEST(Cifar10, ReadsFromATarball) {
  const TempFolder folder;
  write_bytes(folder / "c.tar.gz", tar_gz({{"cifar-10-batches-bin/data_batch_1.bin", record(byte(3), 1, 2, 3)}}));
  EXPECT_EQ(read_cifar10(FileTree::open(folder / "c.tar.gz"), "made").train.size(), 1);
}

TEST(Cifar10, RefusesBadFiles) {
  const TempFolder folder;
  const auto expect = [&](const std::string& bytes, const std::string& part) {
    write_bytes(folder / "data_batch_1.bin", bytes);
    EXPECT_USER_ERROR(read_cifar10(FileTree::open(folder.path()), "made"), part);
  };
  expect(record(byte(1), 1, 1, 1).substr(0, 3000), "not a whole number of 3073-byte records");
  expect("", "not a whole number");
  expect(record(byte(10), 1, 1, 1), "label 10 is out of range");
}

TEST(Cifar100, UsesTheFineLabels) {
  const TempFolder folder;
  write_bytes(folder / "train.bin", record(byte(19) + byte(99), 1, 2, 3));
  write_bytes(folder / "test.bin", record(byte(0) + byte(5), 1, 2, 3));
  const FileTree tree = FileTree::open(folder.path());
  ASSERT_TRUE(is_cifar100(tree));
  const Dataset dataset = read_cifar100(tree, "made");
  EXPECT_EQ(dataset.train.y.item<int64_t>(), 99);
  EXPECT_EQ(dataset.classes(), 100);
  write_bytes(folder / "fine_label_names.txt", "one\ntwo\n");
  EXPECT_USER_ERROR(read_cifar100(FileTree::open(folder.path()), "made"), "names 2 classes, not 100");
}

}  // namespace
}  // namespace sotto::data
