// Pickles that nobody wrote to be read: objects that contain themselves, and sizes without measure.
#include "../support/expect_user_error.h"
#include "../support/temp_folder.h"
#include "models/weights/pickle.h"
#include "models/weights/state_dict.h"

#include <ATen/ATen.h>

#include <archive.h>
#include <archive_entry.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace sotto::models {
namespace {

using namespace std::string_literals;
using test::TempFolder;

// ---- words of the pickle language

std::string text(const std::string& value) {
  return "X"s + static_cast<char>(value.size()) + "\0\0\0"s + value;
}
std::string keep(int slot) {
  return "q"s + static_cast<char>(slot);
}
std::string get(int slot) {
  return "h"s + static_cast<char>(slot);
}
std::string entry(const std::string& key, const std::string& value) {
  return text(key) + value + "s";
}
const std::string kObject = "c__torch__\nM\n)\x81";
const std::string kDrop = "0";
const std::string kEnd = ".";

void add(archive* zip, const std::string& name, const std::string& bytes) {
  const std::unique_ptr<archive_entry, decltype(&archive_entry_free)> file(archive_entry_new(), archive_entry_free);
  archive_entry_set_pathname(file.get(), name.c_str());
  archive_entry_set_size(file.get(), static_cast<la_int64_t>(bytes.size()));
  archive_entry_set_filetype(file.get(), AE_IFREG);
  archive_write_header(zip, file.get());
  archive_write_data(zip, bytes.data(), bytes.size());
}

NamedTensors read(const std::string& pickle) {
  const TempFolder folder;
  const auto path = folder / "w.pt";
  {
    const std::unique_ptr<archive, decltype(&archive_write_free)> zip(archive_write_new(), archive_write_free);
    archive_write_set_format_zip(zip.get());
    archive_write_open_filename(zip.get(), path.c_str());
    add(zip.get(), "w/data.pkl", pickle);
    add(zip.get(), "w/data/0", std::string(24, '\0'));
  }
  return read_pytorch_archive(path);
}

// A tensor of six floats in the file data/0, shown with these sizes and strides.
std::string tensor(const std::string& sizes, const std::string& strides) {
  const std::string storage = "(" + text("storage") + "ctorch\nFloatStorage\n" + text("0") + text("cpu") + "K\x06tQ";
  return "ctorch._utils\n_rebuild_tensor_v2\n(" + storage + "K\0"s + sizes + strides + "tR";
}

TEST(HostilePickles, AreReadWhenTheyAreInOrder) {
  const NamedTensors tensors = read("}" + entry("w", tensor("K\x02K\x03\x86", "K\x03K\x01\x86")) + kEnd);
  ASSERT_EQ(tensors.size(), 1u);
  EXPECT_TRUE(at::equal(tensors[0].value, at::zeros({2, 3})));
}

TEST(HostilePickles, AnObjectMayContainItself) {
  const auto value = read_pickle("]" + keep(1) + get(1) + "a" + kEnd, "test");
  EXPECT_EQ(value->items[0].get(), value.get());
}

TEST(HostilePickles, NestingIsTakenApartWithoutRunningOutOfStack) {
  std::string nested = "]";
  for (int i = 0; i < 1'000'000; ++i) nested += "\x85";
  EXPECT_EQ(read_pickle(nested + kEnd, "test")->items.size(), 1u);
}

TEST(HostilePickles, CopiesDoNotMultiply) {
  std::string many = "(";
  for (int i = 0; i < 20'000; ++i) many += "N";
  many += "t" + keep(1) + "cos\nsystem\n" + keep(2);
  for (int i = 0; i < 20'000; ++i) many += get(2) + get(1) + "R";
  EXPECT_USER_ERROR(read_pickle(many + kEnd, "test"), "malformed pickle");
}

TEST(HostilePickles, ObjectsThatContainThemselvesEnd) {
  EXPECT_USER_ERROR(read(kObject + keep(1) + "}" + entry("a", get(1)) + "b" + kEnd), "without end");
  const std::string parameter = "ctorch._utils\n_rebuild_parameter\n)R" + keep(1) + get(1) + "a";
  EXPECT_USER_ERROR(read("}" + entry("p", parameter) + kEnd), "without end");
  const std::string tag = "ctorch.jit._pickle\nrestore_type_tag\n)R" + keep(1) + get(1) + "a";
  EXPECT_USER_ERROR(read(tag + kEnd), "expected a state dict");
}

TEST(HostilePickles, ObjectsThatContainOthersTwiceEnd) {
  std::string doubling = "N" + keep(0) + kDrop;
  for (int level = 1; level <= 60; ++level) {
    doubling += kObject + "}" + entry("a", get(level - 1)) + entry("b", get(level - 1)) + "b" + keep(level) + kDrop;
  }
  EXPECT_USER_ERROR(read(doubling + get(60) + kEnd), "without end");
}

TEST(HostilePickles, TensorsDoNotGrowBeyondTheirFile) {
  const std::string huge = "\x8a\x06\0\0\0\0\0\x01"s;  // 2^40
  EXPECT_USER_ERROR(read("}" + entry("w", tensor(huge + "\x85", "K\0\x85"s)) + kEnd), "truncated or malformed");
  EXPECT_USER_ERROR(read("}" + entry("w", tensor("K\0"s + huge + huge + "\x87", "K\0K\0K\0\x87"s)) + kEnd),
                    "truncated or malformed");
  std::string often = "}";
  const std::string large = "J\0\0\0\x01"s;  // 2^24 floats, again and again
  for (char name = 'a'; name <= 'f'; ++name) often += entry(std::string(1, name), tensor(large + "\x85", "K\0\x85"s));
  EXPECT_USER_ERROR(read(often + kEnd), "truncated or malformed");
}

}  // namespace
}  // namespace sotto::models
