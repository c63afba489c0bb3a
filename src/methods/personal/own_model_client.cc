#include "methods/personal/own_model_client.h"

#include <ATen/ATen.h>

#include <string>
#include <utility>

namespace sotto::methods {
namespace {

// The sender's part of a state has the model's names.
constexpr const char* kOwn = "own.";
constexpr const char* kOwnModel = "own.model";

}  // namespace

OwnModelClient::OwnModelClient(const ClientContext& context, std::unique_ptr<ClientMethod> sender)
    : TrainerClient(context), sender_(std::move(sender)) {}

void OwnModelClient::select(const Broadcast& broadcast, const privacy::PrivateState& state) {
  TrainerClient::select(broadcast, state);
  received_ = trainer_.flat().values().clone();
  const at::Tensor own = find_tensor(state.values(), kOwnModel);
  if (own.defined()) trainer_.flat().values().copy_(own);
  recall(state);
}

LocalTrainer::Loss OwnModelClient::cross_entropy() const {
  return [this](const data::Batch& batch) { return at::cross_entropy_loss(trainer_.model().logits(batch.x), batch.y); };
}

StepResult OwnModelClient::step(const Broadcast& broadcast, const data::Shard& shard, privacy::PrivateState& state,
                                const StepContext& context) {
  privacy::PrivateState of_sender = state;
  StepResult result = sender_->step(broadcast, shard, of_sender, context);
  if (result.report.diverged) return result;
  OwnModelClient::select(broadcast, state);
  const LocalReport own = train_own(shard, context);
  result.report.samples += own.samples;
  result.report.measures["own_loss"] = own.loss;
  NamedTensors kept;
  for (const auto& [name, value] : of_sender.values()) {
    if (own.diverged || !name.starts_with(kOwn)) kept.push_back({name, value});
  }
  if (!own.diverged) {
    kept.push_back({kOwnModel, trainer_.flat().values().clone()});
    for (NamedTensor& value : memory()) kept.push_back({kOwn + value.name, std::move(value.value)});
  }
  state = privacy::PrivateState(std::move(kept));
  return result;
}

}  // namespace sotto::methods
