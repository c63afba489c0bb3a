// Weights from elsewhere: PyTorch archives, safetensors, TensorFlow.js; and pickles without an archive around them.
#include "fuzz.h"
#include "models/weights/pickle.h"
#include "models/weights/weights.h"

#include <ATen/ATen.h>
#include <torch/csrc/jit/api/module.h>

#include <nlohmann/json.hpp>

std::vector<std::string> sotto::fuzz::seeds() {
  using namespace std::string_literals;
  const NamedTensors tensors{
      {"fc.weight", at::ones({2, 3})}, {"fc.bias", at::zeros({2})}, {"count", at::tensor({7}, at::kLong)}};
  models::write_state_dict(scratch() / "w.pt", tensors);
  torch::jit::Module module("Outer");
  module.register_parameter("bias", at::ones({4}), false);
  module.save((scratch() / "m.pt").string());
  const nlohmann::json tfjs{
      {"weightsManifest",
       {{{"paths", {"shard.bin"}}, {"weights", {{{"name", "a/kernel"}, {"shape", {1, 2}}, {"dtype", "float32"}}}}}}}};
  return {read_file(scratch() / "w.pt"), read_file(scratch() / "m.pt"), tfjs.dump(),
          "\x80\x02}(X\x01\x00\x00\x00\x61](K\x01J\xfe\xff\xff\xff"s +
              "eX\x01\x00\x00\x00\x62\x88N\x86K\x05G@\x04\x00\x00\x00\x00\x00\x00u."s,
          "\x80\x02\x63\x63ollections\nOrderedDict\n)R(X\x01\x00\x00\x00kK\x07u}X\x01\x00\x00\x00mK\x01s\x62."s};
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace sotto;
  static const fs::path shard = fuzz::as_file("weights/shard.bin", std::string(8, '\1'));
  const std::string bytes = fuzz::bytes_of(data, size);
  const fs::path file = fuzz::as_file("weights/input", bytes);
  fuzz::attempt([&] { fuzz::touch(models::read_weights(file)); });
  return fuzz::attempt([&] { models::read_pickle(bytes, "the input"); });
}
