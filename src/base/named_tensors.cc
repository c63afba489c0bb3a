#include "base/named_tensors.h"

#include "base/error.h"

#include <ATen/ATen.h>

#include <algorithm>

namespace sotto {

at::Tensor find_tensor(const NamedTensors& tensors, std::string_view name) {
  const auto found = std::find_if(tensors.begin(), tensors.end(), [&](const auto& t) { return t.name == name; });
  return found == tensors.end() ? at::Tensor() : found->value;
}

NamedTensors clone(const NamedTensors& tensors) {
  NamedTensors copy;
  copy.reserve(tensors.size());
  for (const auto& [name, value] : tensors) copy.push_back({name, value.detach().clone()});
  return copy;
}

void copy_values(NamedTensors& to, const NamedTensors& from) {
  SOTTO_INVARIANT(to.size() == from.size());
  const at::NoGradGuard no_grad;
  for (size_t i = 0; i < to.size(); ++i) {
    SOTTO_INVARIANT(to[i].name == from[i].name && to[i].value.sizes() == from[i].value.sizes());
    to[i].value.copy_(from[i].value);
  }
}

void add_scaled(NamedTensors& to, const NamedTensors& from, double weight) {
  SOTTO_INVARIANT(to.size() == from.size());
  const at::NoGradGuard no_grad;
  for (size_t i = 0; i < to.size(); ++i) to[i].value.add_(from[i].value, weight);
}

void scale(NamedTensors& to, double factor) {
  const at::NoGradGuard no_grad;
  for (auto& tensor : to) tensor.value.mul_(factor);
}

int64_t total_elements(const NamedTensors& tensors) {
  int64_t total = 0;
  for (const auto& tensor : tensors) total += tensor.value.numel();
  return total;
}

bool all_finite(const NamedTensors& tensors) {
  return std::all_of(tensors.begin(), tensors.end(), [](const NamedTensor& t) {
    return !t.value.is_floating_point() || at::isfinite(t.value).all().item<bool>();
  });
}

}  // namespace sotto
