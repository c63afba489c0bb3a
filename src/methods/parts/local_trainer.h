// Plain local training: mini-batch descent on one client's records. The part that most methods share.
#pragma once

#include "data/partition.h"
#include "methods/method.h"
#include "methods/run_settings.h"
#include "models/flat.h"
#include "models/model.h"

#include <functional>
#include <memory>

namespace sotto::methods {

// Owns one model, its gradient buffer and one batch; nothing is allocated per client or per round.
class LocalTrainer {
 public:
  explicit LocalTrainer(const PublicContext& context);
  // With a model of the method's own.
  LocalTrainer(const PublicContext& context, std::shared_ptr<models::Model> model);

  // Called with the gradient in place, before the optimiser's step: room for terms whose gradient is known in closed
  // form.
  using GradientTerm = std::function<void(const models::FlatParameters& parameters)>;

  // E epochs over disjoint, shuffled batches of the shard's records. If the loss or a weight becomes non-finite the
  // report says so.
  LocalReport train(const data::Records& records, const data::Shard& shard, const StepContext& context,
                    const GradientTerm& extra = {});

  // The same with a loss of the method's own; `stepped` is called after every step.
  using Loss = std::function<at::Tensor(const data::Batch& batch)>;
  LocalReport descend(const data::Records& records, const data::Shard& shard, const StepContext& context,
                      const Loss& loss, const GradientTerm& extra = {}, const std::function<void()>& stepped = {});

  // Calls `work` in training mode with a function that makes one step of a fresh optimiser from the gradient in place:
  // for descents whose gradients are made elsewhere.
  void with_optimizer(const StepContext& context, const std::function<void(const std::function<void()>&)>& work);

  // Logits and feature vectors in evaluation mode.
  at::Tensor predict(const at::Tensor& x);
  at::Tensor features(const at::Tensor& x);

  models::Model& model() const { return *model_; }
  const models::FlatParameters& flat() const { return flat_; }
  // Views of the model: shared parameters and floating-point buffers (what FedAvg averages; no buffers beside low-rank
  // paths, where nothing changes them), and personal parameters.
  NamedTensors& shared() { return shared_; }
  NamedTensors& personal() { return personal_; }
  // Personal parameters as every client starts with them.
  const NamedTensors& initial_personal() const { return initial_personal_; }

 private:
  const FederationOptions& options_;
  std::shared_ptr<models::Model> model_;
  models::FlatParameters flat_;
  NamedTensors shared_;
  NamedTensors personal_;
  NamedTensors initial_personal_;
  data::Batch batch_;
};

// The model that a run starts from, the same for the server and every client.
std::shared_ptr<models::Model> initial_model(const PublicContext& context);

}  // namespace sotto::methods
