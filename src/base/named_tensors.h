// An ordered list of named tensors: a model's parameters, an update, a checkpoint.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <string_view>
#include <vector>

namespace sotto {

struct NamedTensor {
  std::string name;
  at::Tensor value;
};

using NamedTensors = std::vector<NamedTensor>;

// The tensor called `name`, or an undefined tensor.
at::Tensor find_tensor(const NamedTensors& tensors, std::string_view name);

// A deep copy that shares no storage with `tensors`.
NamedTensors clone(const NamedTensors& tensors);

// to[i] ← from[i]. Both must have the same names and shapes in the same order.
void copy_values(NamedTensors& to, const NamedTensors& from);

// to[i] += weight · from[i].
void add_scaled(NamedTensors& to, const NamedTensors& from, double weight);

// to[i] *= factor.
void scale(NamedTensors& to, double factor);

int64_t total_elements(const NamedTensors& tensors);
bool all_finite(const NamedTensors& tensors);

}  // namespace sotto
