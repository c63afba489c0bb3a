#include "data/readers/leaf_json.h"

#include "../../support/expect_user_error.h"
#include "../../support/temp_folder.h"
#include "../make_files.h"

#include <ATen/ATen.h>

#include <gtest/gtest.h>

namespace sotto::data {
namespace {

using namespace sotto::test;

std::string image(const std::string& value) {
  std::string text = "[" + value;
  for (int i = 1; i < 784; ++i) text += ", 1.0";
  return text + "]";
}

std::string file(const std::string& user_data) {
  return R"({"users": ["w"], "num_samples": [1], "user_data": )" + user_data + "}";
}

TEST(Leaf, WritersAreDomains) {
  const TempFolder folder;
  write_bytes(folder / "data/train/a.json",
              file(R"({"w1": {"x": [)" + image("0.5") + "," + image("0") +
                   R"(], "y": [3, 61]}, "w2": {"y": [7], "x": [)" + image("0.25") + "]}}"));
  write_bytes(folder / "data/test/a.json", file(R"({"w2": {"x": [)" + image("1") + R"(], "y": [0]}})"));
  const FileTree tree = FileTree::open(folder.path());
  ASSERT_TRUE(is_leaf(tree));
  const Dataset dataset = read_leaf(tree, "femnist");
  EXPECT_EQ(dataset.domain_names, (std::vector<std::string>{"w1", "w2"}));
  EXPECT_EQ(dataset.classes(), 62);
  EXPECT_TRUE(at::equal(dataset.train.y, at::tensor({3, 61, 7}, at::kLong)));
  EXPECT_TRUE(at::equal(dataset.train.domain, at::tensor({0, 0, 1}, at::kLong)));
  EXPECT_EQ(dataset.train.x[0][0][0][0].item<int>(), 128);
  EXPECT_EQ(dataset.train.x[1][0][27][27].item<int>(), 255);
  EXPECT_EQ(dataset.test.domain.item<int64_t>(), 1);
}

TEST(Leaf, RefusesBadFiles) {
  const TempFolder folder;
  const auto expect = [&](const std::string& text, const std::string& part) {
    write_bytes(folder / "train/a.json", text);
    EXPECT_USER_ERROR(read_leaf(FileTree::open(folder.path()), "femnist"), part);
  };
  expect(file(R"({"w": {"x": [)" + image("0") + R"(], "y": [1]}})").substr(0, 900), "truncated or corrupt");
  expect(R"({"users": []})", "no user_data");
  expect(file("{}"), "holds no writers");
  expect(file(R"({"w": {"x": [[0.5, 0.5]], "y": [1]}})"), "writer w: an image does not have 784 pixels");
  expect(file(R"({"w": {"x": [)" + image("0") + R"(], "y": [1, 2]}})"), "1 images but 2 labels");
  expect(file(R"({"w": {"x": [)" + image("2.5") + R"(], "y": [1]}})"), "not in 0…1");
  expect(file(R"({"w": {"x": [)" + image("0") + R"(], "y": [62]}})"), "62 is no label");
  expect(file(R"({"w": {"x": [)" + image("null") + R"(], "y": [6]}})"), "no number");
}

}  // namespace
}  // namespace sotto::data
