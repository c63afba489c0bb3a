// Noise works on plain numbers in memory.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <span>

namespace sotto::privacy {

// Lets `change` rewrite a tensor's numbers: in place where they are contiguous floats on the CPU, otherwise through a
// copy that replaces the tensor's values.
void change_floats(at::Tensor& tensor, const std::function<void(std::span<float>)>& change);
// The same for doubles.
void change_doubles(at::Tensor& tensor, const std::function<void(std::span<double>)>& change);

}  // namespace sotto::privacy
