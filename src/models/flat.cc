#include "models/flat.h"

#include <ATen/ATen.h>

namespace sotto::models {

FlatParameters::FlatParameters(Model& model) {
  const at::NoGradGuard no_grad;
  const NamedTensors shared = model.shared_parameters();
  const NamedTensors personal = model.personal_parameters();
  shared_size_ = total_elements(shared);
  NamedTensors all = shared;
  all.insert(all.end(), personal.begin(), personal.end());
  const auto options = all.empty() ? at::TensorOptions(at::kFloat) : all.front().value.options().requires_grad(false);
  values_ = at::empty({total_elements(all)}, options);
  gradient_ = at::zeros_like(values_);
  int64_t offset = 0;
  for (auto& [name, parameter] : all) {
    const at::Tensor place = values_.narrow(0, offset, parameter.numel()).view(parameter.sizes());
    place.copy_(parameter);
    parameter.set_data(place);
    parameter.mutable_grad() = gradient_.narrow(0, offset, parameter.numel()).view(parameter.sizes());
    offset += parameter.numel();
  }
}

at::Tensor FlatParameters::shared() const {
  return values_.narrow(0, 0, shared_size_);
}

at::Tensor FlatParameters::personal() const {
  return values_.narrow(0, shared_size_, values_.size(0) - shared_size_);
}

at::Tensor FlatParameters::shared_gradient() const {
  return gradient_.narrow(0, 0, shared_size_);
}

void FlatParameters::zero_gradient() const {
  gradient_.zero_();
}

}  // namespace sotto::models
