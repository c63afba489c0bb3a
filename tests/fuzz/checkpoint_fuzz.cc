// A run's checkpoint. What has a checksum is refused as soon as a bit of it changes, so that examples have none.
#include "artifacts/checkpoint_file.h"
#include "fuzz.h"
#include "io/safetensors.h"

#include <ATen/ATen.h>

std::vector<std::string> sotto::fuzz::seeds() {
  io::SafeTensors content{
      .tensors = {{"broadcast/weight", at::ones({2, 3})}, {"server/momentum", at::zeros({2})}},
      .metadata = {{"round", "3"}, {"config_hash", "a"}, {"ledger_rows", "6"}, {"ledger_head", "b"}}};
  const std::string plain = io::safetensors_bytes(content);
  content.metadata["checksum"] = "c";
  return {plain, io::safetensors_bytes(content)};
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace sotto;
  const fs::path file = fuzz::as_file("round_000003.safetensors", fuzz::bytes_of(data, size));
  return fuzz::attempt([&] { fuzz::touch(artifacts::CheckpointFile(file).checkpoint("a").broadcast.values); });
}
