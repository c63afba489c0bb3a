// Tensors as bytes: broadcasts, uploads before they are looked at, feature files, weights.
#include "fuzz.h"
#include "io/safetensors.h"

#include <ATen/ATen.h>

std::vector<std::string> sotto::fuzz::seeds() {
  return {io::safetensors_bytes({.tensors = {{"weight", at::arange(6, at::kFloat).view({2, 3})},
                                             {"classes", at::arange(3, at::kLong)},
                                             {"half", at::ones({3}, at::kHalf)},
                                             {"empty", at::empty({0, 4})}},
                                 .metadata = {{"content", "release"}}}),
          io::safetensors_bytes({.tensors = {{"scalar", at::scalar_tensor(2.5)}}, .metadata = {}}),
          io::safetensors_bytes({})};
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace sotto;
  return fuzz::attempt([&] { fuzz::touch(io::parse_safetensors(fuzz::bytes_of(data, size), "the input").tensors); });
}
