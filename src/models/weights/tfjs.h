// TensorFlow.js models: model.json and the shards it names.
#pragma once

#include "base/named_tensors.h"

#include <filesystem>

namespace sotto::models {

// Tensors in PyTorch's layout: convolution kernels [H, W, in, out] → [out, in, H, W], depthwise ones [H, W, C, m] →
// [C·m, 1, H, W], dense ones [in, out] → [out, in]. Names get dots for slashes and PyTorch's last part: kernel →
// weight, gamma → weight, beta → bias, moving_mean → running_mean, moving_variance → running_var. float32 and int32
// only; anything else, a missing or short shard, or JSON that is not a model is a UserError.
NamedTensors read_tfjs(const std::filesystem::path& model_json);

}  // namespace sotto::models
