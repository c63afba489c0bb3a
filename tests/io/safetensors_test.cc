#include "io/safetensors.h"

#include "../support/expect_user_error.h"
#include "../support/temp_folder.h"
#include "base/files.h"

#include <ATen/ATen.h>

#include <gtest/gtest.h>

#include <cstring>

namespace sotto::io {
namespace {

using test::TempFolder;

std::string with_header(const std::string& header, const std::string& data = "") {
  const uint64_t length = header.size();
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &length, 8);
  return bytes + header + data;
}

TEST(Safetensors, RoundTripsEveryType) {
  const TempFolder folder;
  SafeTensors content;
  for (const auto type : {at::kByte, at::kInt, at::kLong, at::kHalf, at::kFloat, at::kDouble, at::kBool}) {
    content.tensors.push_back({c10::toString(type), at::arange(6).view({2, 3}).to(type)});
  }
  content.tensors.push_back({"scalar", at::scalar_tensor(2.5)});
  content.tensors.push_back({"empty", at::empty({0, 4})});
  content.metadata = {{"names", "[\"ä\"]"}};
  write_safetensors(folder / "x", content);
  const SafeTensors read = read_safetensors(folder / "x");
  EXPECT_EQ(read.metadata, content.metadata);
  ASSERT_EQ(read.tensors.size(), content.tensors.size());
  for (size_t i = 0; i < read.tensors.size(); ++i) {
    EXPECT_EQ(read.tensors[i].name, content.tensors[i].name);
    EXPECT_EQ(read.tensors[i].value.scalar_type(), content.tensors[i].value.scalar_type());
    EXPECT_TRUE(at::equal(read.tensors[i].value, content.tensors[i].value)) << read.tensors[i].name;
  }
}

TEST(Safetensors, WritesStridedTensorsInOrder) {
  const TempFolder folder;
  const at::Tensor transposed = at::arange(12, at::kFloat).view({3, 4}).t();
  write_safetensors(folder / "x", {{{"t", transposed}}, {}});
  EXPECT_TRUE(at::equal(read_safetensors(folder / "x").tensors[0].value, transposed));
}

TEST(Safetensors, WritingToATensorLeavesTheFileAlone) {
  const TempFolder folder;
  write_safetensors(folder / "x", {{{"t", at::zeros({1000})}}, {}});
  const SafeTensors first = read_safetensors(folder / "x");
  first.tensors[0].value.fill_(1);
  EXPECT_EQ(first.tensors[0].value.sum().item<float>(), 1000);
  EXPECT_EQ(read_safetensors(folder / "x").tensors[0].value.sum().item<float>(), 0);
}

TEST(Safetensors, TensorsOutliveTheFile) {
  const TempFolder folder;
  write_safetensors(folder / "x", {{{"t", at::ones({5000})}}, {}});
  const at::Tensor tensor = read_safetensors(folder / "x").tensors[0].value;
  fs::remove(folder / "x");
  EXPECT_EQ(tensor.sum().item<float>(), 5000);
}

TEST(Safetensors, ReadsUnalignedTensorsOfOtherWriters) {
  const TempFolder folder;
  std::string data(1 + 8, '\0');
  const int64_t value = 77;
  std::memcpy(data.data() + 1, &value, 8);
  write_file_atomically(folder / "x", with_header(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                                                  R"("b":{"dtype":"I64","shape":[1],"data_offsets":[1,9]}})",
                                                  data));
  EXPECT_EQ(find_tensor(read_safetensors(folder / "x").tensors, "b").item<int64_t>(), 77);
}

TEST(Safetensors, EveryTruncationIsAUserError) {
  const TempFolder folder;
  write_safetensors(folder / "x", {{{"a", at::arange(10)}, {"b", at::rand({3})}}, {{"k", "v"}}});
  const std::string whole = read_file(folder / "x");
  for (size_t size = 0; size < whole.size(); size += 5) {
    write_file_atomically(folder / "cut", std::string_view(whole).substr(0, size));
    EXPECT_USER_ERROR(read_safetensors(folder / "cut"), "not a valid safetensors file");
  }
}

TEST(Safetensors, ForeignAndInconsistentFilesAreUserErrors) {
  const TempFolder folder;
  const auto expect = [&](const std::string& bytes, const std::string& part) {
    write_file_atomically(folder / "x", bytes);
    EXPECT_USER_ERROR(read_safetensors(folder / "x"), part);
  };
  expect(std::string(100, 'z'), "another format");
  expect(with_header("[1,2]"), "not a JSON object");
  expect(with_header(R"({"a":{"dtype":"F32"}})"), "header cannot be read");
  expect(with_header(R"({"a":{"dtype":"C64","shape":[1],"data_offsets":[0,8]}})", std::string(8, 0)), "C64");
  expect(with_header(R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})", std::string(8, 0)), "shape");
  expect(with_header(R"({"a":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}})", std::string(8, 0)), "shape");
  expect(with_header(R"({"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}})"), "shape");
  expect(with_header(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)"
                     R"("b":{"dtype":"U8","shape":[4],"data_offsets":[2,6]}})",
                     std::string(6, 0)),
         "overlaps");
  EXPECT_USER_ERROR(read_safetensors(folder / "none"), "cannot read");
  EXPECT_USER_ERROR(read_safetensors(folder.path()), "not a regular file");
}

}  // namespace
}  // namespace sotto::io
