#include "privacy/wire.h"

#include "io/safetensors.h"
#include "privacy/channel.h"
#include "privacy/ledger.h"

#include <ATen/ATen.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace sotto::privacy {
namespace {

using ::testing::HasSubstr;

const UploadShape kShape{
    .tensors = {
        {.name = "weight", .sizes = {2, 3}},
        {.name = "rows", .sizes = {kAnyLength, 2}, .required = false},
        {.name = "classes", .sizes = {kAnyLength}, .dtype = at::kLong, .required = false, .least = 0, .most = 9},
        {.name = "records", .dtype = at::kDouble, .least = 1}}};

NamedTensors good() {
  return {{"weight", at::arange(6, at::kFloat).view({2, 3})}, {"records", at::scalar_tensor(20.0, at::kDouble)}};
}

std::string bytes_of(const NamedTensors& values, const std::string& content = "release") {
  return io::safetensors_bytes({.tensors = values, .metadata = {{"content", content}}});
}

void expect_refused(std::string bytes, const std::string& why) {
  try {
    decode(std::move(bytes), kShape);
    ADD_FAILURE() << "accepted; expected: " << why;
  } catch (const UploadRefused& refusal) {
    EXPECT_THAT(refusal.what(), HasSubstr(why));
    EXPECT_THAT(refusal.what(), ::testing::Not(HasSubstr("\n")));
  }
}

TEST(Wire, AReleaseComesBackToTheLastBit) {
  Ledger ledger;
  Release release = Channel::in_the_clear("model", "a test").release_clear({.ledger = ledger}, [] {
    NamedTensors values = good();
    values[0].value[0][0] = std::nextafter(1.0F, 2.0F);
    values.insert(values.begin() + 1, {"rows", at::randn({5, 2})});
    return Contribution(std::move(values));
  });
  const NamedTensors sent = clone(release.values());
  const Upload upload(std::move(release));
  const Upload received = decode(encode(upload), kShape);
  ASSERT_EQ(received.values().size(), sent.size());
  for (size_t i = 0; i < sent.size(); ++i) {
    EXPECT_EQ(received.values()[i].name, sent[i].name);
    EXPECT_TRUE(at::equal(received.values()[i].value, sent[i].value));
  }
  EXPECT_EQ(received.trusted(), nullptr);
}

TEST(Wire, ForeignValuesAreRefusedWithAReason) {
  const auto with = [](const std::string& name, const at::Tensor& value) {
    NamedTensors values = good();
    std::erase_if(values, [&](const NamedTensor& tensor) { return tensor.name == name; });
    values.push_back({name, value});
    return bytes_of(values);
  };
  decode(bytes_of(good()), kShape);
  expect_refused(with("weight", at::zeros({3, 2})), "'weight' has the shape [3, 2], not [2, 3]");
  expect_refused(with("weight", at::zeros({6})), "shape");
  expect_refused(with("weight", at::zeros({2, 3}, at::kDouble)), "'weight' holds Double, not Float");
  expect_refused(with("weight", at::full({2, 3}, NAN)), "not finite");
  expect_refused(with("weight", at::full({2, 3}, -INFINITY)), "not finite");
  expect_refused(with("rows", at::zeros({4, 3})), "[4, 3], not [-1, 2]");
  expect_refused(with("classes", at::full({2}, 10, at::kLong)), "'classes'");
  NamedTensors unlike = good();
  unlike.push_back({"rows", at::zeros({4, 2})});
  unlike.push_back({"classes", at::zeros({3}, at::kLong)});
  expect_refused(bytes_of(unlike), "'classes' has the shape [3]");
  expect_refused(with("records", at::scalar_tensor(0.0, at::kDouble)), "'records'");
  expect_refused(with("records", at::scalar_tensor(-5.0, at::kDouble)), "'records'");
  expect_refused(with("records", at::scalar_tensor(INFINITY, at::kDouble)), "'records'");
  expect_refused(with("loss", at::zeros({1})), "nobody asked for a tensor 'loss'");
  expect_refused(bytes_of({good()[0]}), "'records' is missing");
  expect_refused(bytes_of(good(), "trusted"), "it does not say that it is a release");
}

TEST(Wire, BytesOfAnyOtherKindAreRefused) {
  const std::string whole = bytes_of(good());
  expect_refused("", "too short");
  expect_refused("hello, server", "truncated");
  for (const size_t length : {size_t{7}, size_t{20}, whole.size() / 2, whole.size() - 1}) {
    expect_refused(whole.substr(0, length), "the upload");
  }
  std::string header = whole;
  header[9] = '!';
  expect_refused(header, "header");
  std::string huge(8, '\xff');
  expect_refused(huge + "{}", "truncated");
}

TEST(Wire, WhatATrustedServerIsHandedIsClippedAgain) {
  const UploadShape shape{.tensors = {{.name = "update", .sizes = {4}}},
                          .trusted = TrustedBounds{.groups = {{"update", 1, 4, 2.0}}, .rules = {{"update", 1, 2.0}}}};
  const auto received = [&](const at::Tensor& value) {
    const Upload upload = decode(bytes_of({{"update", value}}, "trusted"), shape);
    return upload.trusted()->values()[0].value.clone();
  };
  const at::Tensor within = at::tensor({1.0F, -1.0F, 1.0F, 0.5F});
  EXPECT_TRUE(at::equal(received(within), within));
  EXPECT_LE(received(within * 100).norm().item<double>(), 2.0);
  EXPECT_GT(received(within * 100).norm().item<double>(), 1.99);
}

}  // namespace
}  // namespace sotto::privacy
