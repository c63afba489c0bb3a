// Class prototypes: vectors that stand for classes, several of one class if it was clustered.
#pragma once

#include "base/named_tensors.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string_view>
#include <vector>

namespace sotto::methods {

struct PrototypeSet {
  at::Tensor values;   // float [K, d]; undefined if there are none
  at::Tensor classes;  // int64 [K]
  at::Tensor weights;  // float [K]: how many records each stands for, as far as is known

  bool empty() const { return !values.defined() || values.size(0) == 0; }
  int64_t size() const { return empty() ? 0 : values.size(0); }

  // Only those where `keep` (bool [K]) is true.
  PrototypeSet where(const at::Tensor& keep) const;
};

PrototypeSet concatenate(const std::vector<PrototypeSet>& sets);

// As tensors prefix.values, prefix.classes, prefix.weights of a broadcast, and back; an empty set if they are absent.
void append(NamedTensors& to, std::string_view prefix, const PrototypeSet& set);
PrototypeSet find_prototypes(const NamedTensors& from, std::string_view prefix);

}  // namespace sotto::methods
