// Weights on disk: PyTorch state dicts (zip), TorchScript archives, safetensors, TensorFlow.js shards.
#pragma once

#include "base/named_tensors.h"

#include <filesystem>
#include <string>

namespace sotto::models {

// Reads any of the formats, told apart by content. A truncated or foreign file is a UserError that says what was
// expected.
NamedTensors read_weights(const std::filesystem::path& path);

// A state dict that PyTorch's torch.load reads. Written atomically.
void write_state_dict(const std::filesystem::path& path, const NamedTensors& tensors);

// into[i] ← the tensor of the same name in `from`. Any missing name, extra name or different shape is one UserError
// that lists exactly which tensors (the first dozen, and how many more).
void assign_weights(NamedTensors& into, const NamedTensors& from, const std::string& where);

}  // namespace sotto::models
