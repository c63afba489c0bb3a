// PyTorch's zip archives: state dicts written by torch.save, and TorchScript modules.
#pragma once

#include "base/named_tensors.h"

#include <filesystem>

namespace sotto::models {

// Tensors by name. A checkpoint that holds its state dict under "state_dict", "model_state_dict" or "model" is opened;
// a TorchScript module's tensors are named by their path. A truncated archive, or one without tensors, is a UserError.
NamedTensors read_pytorch_archive(const std::filesystem::path& path);

}  // namespace sotto::models
