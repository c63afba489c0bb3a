// Reading weights in every format, whole and damaged.
#include "../support/expect_user_error.h"
#include "../support/temp_folder.h"
#include "base/files.h"
#include "io/safetensors.h"
#include "models/weights/weights.h"

#include <ATen/ATen.h>
#include <torch/csrc/jit/api/module.h>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cstring>

namespace sotto::models {
namespace {

using test::TempFolder;

NamedTensors samples() {
  return {{"fc.weight", at::arange(6.0).reshape({2, 3}).to(at::kFloat)},
          {"fc.bias", at::tensor({0.5f, -1.5f})},
          {"count", at::tensor({7}, at::kLong)}};
}

void expect_equal(const NamedTensors& got, const NamedTensors& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (const auto& [name, value] : expected) {
    ASSERT_TRUE(find_tensor(got, name).defined()) << name;
    EXPECT_TRUE(find_tensor(got, name).equal(value)) << name;
  }
}

TEST(WeightFormats, StateDictRoundTripIncludingStridedAndScalarTensors) {
  const TempFolder folder;
  NamedTensors tensors = samples();
  tensors.push_back({"transposed", at::arange(6.0).reshape({2, 3}).t()});
  tensors.push_back({"scalar", at::scalar_tensor(3.5)});
  tensors.push_back({"empty", at::empty({0, 4})});
  write_state_dict(folder / "w.pt", tensors);
  expect_equal(read_weights(folder / "w.pt"), tensors);
}

TEST(WeightFormats, HalfPrecisionBecomesFloat) {
  const TempFolder folder;
  write_state_dict(folder / "half.pt", {{"h", at::ones({2}, at::kHalf)}, {"b", at::ones({2}, at::kBFloat16)}});
  for (const auto& tensor : read_weights(folder / "half.pt")) EXPECT_EQ(tensor.value.scalar_type(), at::kFloat);
  io::write_safetensors(folder / "half.safetensors", {{{"h", at::full({2}, 1.5, at::kHalf)}}, {}});
  EXPECT_TRUE(read_weights(folder / "half.safetensors")[0].value.equal(at::full({2}, 1.5f)));
}

TEST(WeightFormats, Safetensors) {
  const TempFolder folder;
  io::write_safetensors(folder / "w.safetensors", {samples(), {}});
  expect_equal(read_weights(folder / "w.safetensors"), samples());
}

TEST(WeightFormats, TorchScriptModulesByPath) {
  const TempFolder folder;
  torch::jit::Module inner("Inner"), outer("Outer");
  inner.register_parameter("weight", at::ones({2, 3}), false);
  inner.register_buffer("running_mean", at::zeros({3}));
  outer.register_module("layer", inner);
  outer.register_parameter("bias", at::ones({4}), false);
  outer.save((folder / "m.pt").string());
  expect_equal(read_weights(folder / "m.pt"),
               {{"layer.weight", at::ones({2, 3})}, {"layer.running_mean", at::zeros({3})}, {"bias", at::ones({4})}});
}

std::string floats(const std::vector<float>& values) {
  std::string bytes(values.size() * sizeof(float), '\0');
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

nlohmann::json tfjs_model() {
  const auto entry = [](const char* name, std::vector<int64_t> shape) {
    return nlohmann::json{{"name", name}, {"shape", shape}, {"dtype", "float32"}};
  };
  return {{"weightsManifest",
           {{{"paths", {"a.bin", "b.bin"}},
             {"weights",
              {entry("conv/kernel", {1, 2, 3, 1}), entry("dense/kernel", {2, 1}), entry("bn/gamma", {1}),
               entry("bn/beta", {1}), entry("bn/moving_mean", {1}), entry("bn/moving_variance", {1}),
               entry("x/depthwise_kernel", {1, 2, 2, 1}), entry("scalar", {})}}}}}};
}

void write_tfjs(const TempFolder& folder, const nlohmann::json& model, size_t count = 17) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = static_cast<float>(i);
  const std::string bytes = floats(values);
  write_file_atomically(folder / "model.json", model.dump());
  // The cut between shards need not fall between tensors.
  write_file_atomically(folder / "a.bin", std::string_view(bytes).substr(0, 10));
  write_file_atomically(folder / "b.bin", std::string_view(bytes).substr(10));
}

TEST(WeightFormats, TensorFlowJsGetsPyTorchsLayoutAndNames) {
  const TempFolder folder;
  write_tfjs(folder, tfjs_model());
  const NamedTensors expected = {{"conv.weight", at::tensor({0.f, 3.f, 1.f, 4.f, 2.f, 5.f}).view({1, 3, 1, 2})},
                                 {"dense.weight", at::tensor({6.f, 7.f}).view({1, 2})},
                                 {"bn.weight", at::tensor({8.f})},
                                 {"bn.bias", at::tensor({9.f})},
                                 {"bn.running_mean", at::tensor({10.f})},
                                 {"bn.running_var", at::tensor({11.f})},
                                 {"x.depthwise_kernel", at::tensor({12.f, 14.f, 13.f, 15.f}).view({2, 1, 1, 2})},
                                 {"scalar", at::scalar_tensor(16.f)}};
  expect_equal(read_weights(folder / "model.json"), expected);
  expect_equal(read_weights(folder.path()), expected);
}

TEST(WeightFormats, DamagedTensorFlowJs) {
  const TempFolder folder;
  write_tfjs(folder, tfjs_model(), 13);
  EXPECT_USER_ERROR(read_weights(folder / "model.json"), "end within tensor 'x/depthwise_kernel'");
  write_tfjs(folder, tfjs_model(), 18);
  EXPECT_USER_ERROR(read_weights(folder / "model.json"), "4 bytes are left over");
  auto model = tfjs_model();
  model["weightsManifest"][0]["weights"][0]["dtype"] = "uint8";
  write_tfjs(folder, model);
  EXPECT_USER_ERROR(read_weights(folder / "model.json"), "stored as uint8");
  model = tfjs_model();
  model["weightsManifest"][0]["paths"][0] = "../a.bin";
  write_tfjs(folder, model);
  EXPECT_USER_ERROR(read_weights(folder / "model.json"), "outside");
  model = tfjs_model();
  model["weightsManifest"][0]["weights"][0]["shape"] = {int64_t{1} << 40, int64_t{1} << 40};
  write_tfjs(folder, model);
  EXPECT_USER_ERROR(read_weights(folder / "model.json"), "end within tensor 'conv/kernel'");
  write_file_atomically(folder / "model.json", std::string_view("{\"a\": 1"));
  EXPECT_USER_ERROR(read_weights(folder / "model.json"), "not a TensorFlow.js model");
}

TEST(WeightFormats, TruncatedStateDictsAreUserErrors) {
  const TempFolder folder;
  write_state_dict(folder / "w.pt", samples());
  const std::string whole = read_file(folder / "w.pt");
  for (size_t size = 4; size < whole.size() / 2; size += 97) {
    write_file_atomically(folder / "cut.pt", std::string_view(whole).substr(0, size));
    EXPECT_THROW(read_weights(folder / "cut.pt"), UserError) << size;
  }
}

TEST(WeightFormats, ForeignFilesSayWhatWasExpected) {
  const TempFolder folder;
  const auto read = [&](std::string_view content) {
    write_file_atomically(folder / "f", content);
    read_weights(folder / "f");
  };
  EXPECT_USER_ERROR(read(""), "not weights");
  EXPECT_USER_ERROR(read("hello, these are not weights"), "not weights");
  EXPECT_USER_ERROR(read("\x80\x02\x8a\x0al\xfc\x9c"), "PyTorch's old file format");
  EXPECT_USER_ERROR(read_weights(folder / "missing"), "missing");
}

}  // namespace
}  // namespace sotto::models
