// NumPy arrays: what the format says, and what must be refused.
#include "io/numpy.h"

#include "base/error.h"

#include <ATen/ATen.h>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

namespace sotto::io {
namespace {

std::string npy(const std::string& header, const std::string& data, int major = 1) {
  const std::string text = header + "\n";
  std::string bytes = "\x93NUMPY";
  bytes += static_cast<char>(major);
  bytes += '\0';
  for (int i = 0; i < (major > 1 ? 4 : 2); ++i) bytes += static_cast<char>(text.size() >> (8 * i) & 0xFFU);
  return bytes + text + data;
}

template <typename T>
std::string raw(const std::vector<T>& values) {
  std::string bytes(values.size() * sizeof(T), '\0');
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

std::string header(const std::string& type, const std::string& shape, const std::string& columns_first = "False") {
  return fmt::format("{{'descr': '{}', 'fortran_order': {}, 'shape': {}, }}", type, columns_first, shape);
}

void expect_refused(const std::string& bytes, const std::string& reason) {
  try {
    parse_npy(bytes, "file.npy");
    FAIL() << "accepted, where " << reason << " was expected";
  } catch (const UserError& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("file.npy"));
    EXPECT_THAT(error.what(), ::testing::HasSubstr(reason));
  }
}

TEST(Numpy, ReadsNumbersOfEveryKindAndBothOrders) {
  const std::vector<float> six = {1, 2, 3, 4, 5, 6};
  const at::Tensor rows = parse_npy(npy(header("<f4", "(2, 3)"), raw(six)), "x");
  EXPECT_TRUE(at::equal(rows, at::tensor({1.0F, 2.0F, 3.0F, 4.0F, 5.0F, 6.0F}).view({2, 3})));
  const at::Tensor columns = parse_npy(npy(header("<f4", "(3, 2)", "True"), raw(six), 2), "x");
  EXPECT_TRUE(at::equal(columns, rows.t()));
  EXPECT_TRUE(parse_npy(npy(header("<i8", "(2,)"), raw<int64_t>({-7, 9})), "x").equal(at::tensor({-7L, 9L})));
  EXPECT_EQ(parse_npy(npy(header("|u1", "(1, 2, 2)"), "abcd"), "x").scalar_type(), at::kByte);
  EXPECT_EQ(parse_npy(npy(header("<f8", "()"), raw<double>({2.5})), "x").item<double>(), 2.5);
  EXPECT_EQ(parse_npy(npy(header("<f8", "(0, 5)"), ""), "x").sizes(), (std::vector<int64_t>{0, 5}));
  EXPECT_EQ(parse_npy(npy(header("|b1", "(2,)"), std::string("\1\0", 2)), "x").sum().item<int64_t>(), 1);
}

TEST(Numpy, RefusesWhatItCannotReadInOneLine) {
  const std::string good = npy(header("<f4", "(2, 3)"), raw<float>({1, 2, 3, 4, 5, 6}));
  expect_refused("", "no NumPy array");
  expect_refused("PK\3\4 something else entirely", "no NumPy array");
  for (size_t size = 12; size < good.size(); ++size) {
    EXPECT_THROW(parse_npy(good.substr(0, size), "cut"), UserError) << size;
  }
  expect_refused(good.substr(0, good.size() - 1), "truncated");
  expect_refused(npy(header("<f4", "(9223372036854775807, 9223372036854775807)"), "abcd"), "truncated");
  expect_refused(npy(header("<f4", "(4611686018427387904, 4)"), "abcd"), "truncated");
  expect_refused(npy(header("<f4", "(99999999999999999999,)"), "abcd"), "header");
  expect_refused(npy(header("<f4", "(-1,)"), "abcd"), "header");
  expect_refused(npy(header("<f4", "(1,", "Maybe"), "abcd"), "header");
  expect_refused(npy("not a dictionary", "abcd"), "header");
  expect_refused(npy(header("|O", "(1,)"), "abcd"), "'|O'");
  expect_refused(npy(header(">f4", "(1,)"), "abcd"), "little-endian");
  expect_refused(npy(header("<U3", "(1,)"), "abcd"), "'<U3'");
  expect_refused(npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }", "abcd"), "records");
}

}  // namespace
}  // namespace sotto::io
