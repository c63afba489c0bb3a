#include "privacy/mechanisms/floats.h"

#include <ATen/ATen.h>

namespace sotto::privacy {

namespace {

template <typename Number>
void change_as(at::Tensor& tensor, at::ScalarType type, const std::function<void(std::span<Number>)>& change) {
  const at::NoGradGuard no_grad;
  const bool direct = tensor.device().is_cpu() && tensor.scalar_type() == type && tensor.is_contiguous();
  at::Tensor numbers = direct ? tensor : tensor.to(at::kCPU, type).contiguous();
  change({numbers.data_ptr<Number>(), static_cast<size_t>(numbers.numel())});
  if (!direct) tensor.copy_(numbers);
}

}  // namespace

void change_floats(at::Tensor& tensor, const std::function<void(std::span<float>)>& change) {
  change_as<float>(tensor, at::kFloat, change);
}

void change_doubles(at::Tensor& tensor, const std::function<void(std::span<double>)>& change) {
  change_as<double>(tensor, at::kDouble, change);
}

}  // namespace sotto::privacy
