#include "methods/parts/trainer_client.h"

namespace sotto::methods {

void TrainerClient::select(const Broadcast& broadcast, const privacy::PrivateState& state) {
  for (const auto& [name, value] : trainer_.shared()) {
    const at::Tensor sent = find_tensor(broadcast.values, name);
    if (sent.defined()) value.detach().copy_(sent);
  }
  for (size_t i = 0; i < trainer_.personal().size(); ++i) {
    const auto& [name, initial] = trainer_.initial_personal()[i];
    const at::Tensor kept = find_tensor(state.values(), name);
    trainer_.personal()[i].value.detach().copy_(kept.defined() ? kept : initial);
  }
}

void TrainerClient::keep_personal(privacy::PrivateState& state, const NamedTensors& also) {
  NamedTensors kept = clone(trainer_.personal());
  kept.insert(kept.end(), also.begin(), also.end());
  if (!kept.empty()) state = privacy::PrivateState(std::move(kept));
}

}  // namespace sotto::methods
