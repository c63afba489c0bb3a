// A client that sends by one method and keeps a model of its own beside it, which is trained without noise and therefore
// never leaves: nothing that is sent is computed from it.
#pragma once

#include "methods/parts/trainer_client.h"

#include <ATen/core/Tensor.h>

#include <memory>

namespace sotto::methods {

class OwnModelClient : public TrainerClient {
 public:
  // `sender` makes the uploads, and knows nothing of the client's own model.
  OwnModelClient(const ClientContext& context, std::unique_ptr<ClientMethod> sender);

  // The sender's step, then training of the own model. If only the latter diverges, the upload goes and the own model
  // stays as it was.
  StepResult step(const Broadcast& broadcast, const data::Shard& shard, privacy::PrivateState& state,
                  const StepContext& context) override;
  // The client's own model, or the broadcast's where the state has none.
  void select(const Broadcast& broadcast, const privacy::PrivateState& state) override;

 protected:
  // Trains the own model, which lies in the trainer: as it was kept, or as it was received if there is none yet.
  virtual LocalReport train_own(const data::Shard& shard, const StepContext& context) = 0;
  // The loss of the model in the trainer.
  LocalTrainer::Loss cross_entropy() const;
  // What a member keeps besides.
  virtual void recall(const privacy::PrivateState&) {}
  virtual NamedTensors memory() const { return {}; }

  // The parameters that the broadcast brought, in the layout of the trainer's.
  const at::Tensor& received() const { return received_; }

 private:
  std::unique_ptr<ClientMethod> sender_;
  at::Tensor received_;
};

}  // namespace sotto::methods
