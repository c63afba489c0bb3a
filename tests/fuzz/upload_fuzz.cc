// What a client sends, at the one door to an upload: releases, and values for a trusted server.
#include "fuzz.h"
#include "io/safetensors.h"
#include "privacy/wire.h"

#include <ATen/ATen.h>

namespace {

using namespace sotto;

privacy::UploadShape shape(bool trusted) {
  privacy::UploadShape shape{.tensors = {{.name = "weight", .sizes = {2, 3}},
                                         {.name = "rows", .sizes = {privacy::kAnyLength, 2}, .required = false},
                                         {.name = "classes",
                                          .sizes = {privacy::kAnyLength},
                                          .dtype = at::kLong,
                                          .required = false,
                                          .least = 0,
                                          .most = 9}}};
  if (trusted) {
    shape.tensors.resize(1);
    shape.trusted =
        privacy::TrustedBounds{.groups = {{.name = "all", .tensors = 1, .coordinates = 6, .sensitivity = 1.0}},
                               .rules = {{.name = "all", .tensors = 1, .bound = 1.0}}};
  }
  return shape;
}

}  // namespace

std::vector<std::string> fuzz::seeds() {
  const NamedTensors values{{"weight", at::arange(6, at::kFloat).view({2, 3})},
                            {"rows", at::ones({3, 2})},
                            {"classes", at::arange(3, at::kLong)}};
  return {io::safetensors_bytes({.tensors = values, .metadata = {{"content", "release"}}}),
          io::safetensors_bytes({.tensors = {values[0]}, .metadata = {{"content", "trusted"}}})};
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const privacy::UploadShape released = shape(false), trusted = shape(true);
  for (const auto* expected : {&released, &trusted}) {
    fuzz::attempt<privacy::UploadRefused>(
        [&] { fuzz::touch(privacy::decode(fuzz::bytes_of(data, size), *expected).values()); });
  }
  return 0;
}
