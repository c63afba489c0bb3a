// A client that holds one model: the part that broadcasts fill, and a personal part that stays with it.
#pragma once

#include "methods/method.h"
#include "methods/parts/local_trainer.h"

namespace sotto::methods {

class TrainerClient : public ClientMethod {
 public:
  explicit TrainerClient(const ClientContext& context) : trainer_(context), records_(context.records) {}

  // Shared values come from the broadcast where it names them, personal ones from the state, or as clients start.
  void select(const Broadcast& broadcast, const privacy::PrivateState& state) override;
  at::Tensor predict(const at::Tensor& x) override { return trainer_.predict(x); }
  at::Tensor features(const at::Tensor& x) override { return trainer_.features(x); }
  NamedTensors selected_weights() const override { return trainer_.model().state(); }

 protected:
  // What the client keeps for itself after a step: the model's personal part, if it has one, and what else it is given.
  void keep_personal(privacy::PrivateState& state, const NamedTensors& also = {});

  LocalTrainer trainer_;
  const data::Records& records_;  // that shards index
};

}  // namespace sotto::methods
