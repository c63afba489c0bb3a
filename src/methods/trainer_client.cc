#include "methods/trainer_client.h"

namespace sotto::methods {

void TrainerClient::select(const Broadcast& broadcast, const privacy::PrivateState& state) {
  for (const auto& [name, value] : trainer_.shared()) {
    const at::Tensor sent = find_tensor(broadcast.values, name);
    if (sent.defined()) value.detach().copy_(sent);
  }
  copy_values(trainer_.personal(), state.empty() ? trainer_.initial_personal() : state.values());
}

void TrainerClient::keep_personal(privacy::PrivateState& state) {
  if (!trainer_.personal().empty()) state = privacy::PrivateState(clone(trainer_.personal()));
}

}  // namespace sotto::methods
