#include "privacy/mechanisms/floats.h"

#include <ATen/ATen.h>

namespace sotto::privacy {

void change_floats(at::Tensor& tensor, const std::function<void(std::span<float>)>& change) {
  const at::NoGradGuard no_grad;
  const bool direct = tensor.device().is_cpu() && tensor.scalar_type() == at::kFloat && tensor.is_contiguous();
  at::Tensor floats = direct ? tensor : tensor.to(at::kCPU, at::kFloat).contiguous();
  change({floats.data_ptr<float>(), static_cast<size_t>(floats.numel())});
  if (!direct) tensor.copy_(floats);
}

}  // namespace sotto::privacy
