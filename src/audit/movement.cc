#include "audit/movement.h"

#include <ATen/ATen.h>

namespace sotto::audit {

at::Tensor movement(const NamedTensors& upload, const NamedTensors& parameters) {
  std::vector<at::Tensor> parts;
  for (const NamedTensor& parameter : parameters) parts.push_back(parameter.value.detach().reshape({-1}));
  const at::Tensor before = at::cat(parts);
  at::Tensor sent = before.clone(), known = at::zeros_like(before);
  int64_t offset = 0;
  for (const auto& [name, value] : parameters) {
    if (const at::Tensor part = find_tensor(upload, name); part.defined()) {
      sent.narrow(0, offset, value.numel()).copy_(part.reshape({-1}));
      known.narrow(0, offset, value.numel()).fill_(1);
    }
    offset += value.numel();
  }
  for (const auto& [name, value] : upload) {
    if (value.numel() != before.numel() || !value.is_floating_point()) continue;
    sent = value.reshape({-1}).clone();
    known.fill_(1);
  }
  const at::Tensor from_before = (sent - before) * known, from_zero = sent * known;
  return from_before.norm().item<double>() <= from_zero.norm().item<double>() ? from_before : from_zero;
}

}  // namespace sotto::audit
