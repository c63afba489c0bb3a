#include "methods/parts/local_trainer.h"

#include <ATen/ATen.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>

#include <algorithm>

namespace sotto::methods {
namespace {

std::unique_ptr<torch::optim::Optimizer> make_optimizer(const FederationOptions& options, const at::Tensor& flat) {
  const std::vector<at::Tensor> parameters = {flat};
  if (options.optimizer == Optimizer::kAdam) {
    return std::make_unique<torch::optim::Adam>(
        parameters, torch::optim::AdamOptions(options.lr).weight_decay(options.weight_decay));
  }
  if (options.optimizer == Optimizer::kAdamW) {
    return std::make_unique<torch::optim::AdamW>(
        parameters, torch::optim::AdamWOptions(options.lr).weight_decay(options.weight_decay));
  }
  return std::make_unique<torch::optim::SGD>(
      parameters, torch::optim::SGDOptions(options.lr).momentum(options.momentum).weight_decay(options.weight_decay));
}

at::Tensor shuffled(const at::Tensor& indices, RandomStream& stream) {
  at::Tensor order = indices.clone();
  stream.shuffle({order.data_ptr<int64_t>(), static_cast<size_t>(order.numel())});
  return order;
}

}  // namespace

std::shared_ptr<models::Model> initial_model(const PublicContext& context) {
  RandomStream init(context.spec.seed, "model-init");
  return models::make_model(context.spec.model, context.facts.task, init, !context.spec.privacy);
}

LocalTrainer::LocalTrainer(const PublicContext& context) : LocalTrainer(context, initial_model(context)) {}

LocalTrainer::LocalTrainer(const PublicContext& context, std::shared_ptr<models::Model> model)
    : options_(context.spec.federation),
      model_(std::move(model)),
      flat_(*model_),
      shared_(model_->shared_parameters()),
      personal_(model_->personal_parameters()) {
  const bool moves_buffers = context.spec.model.lora.rank == 0;  // a frozen layer's statistics stay as they are
  for (const auto& buffer : model_->buffer_tensors()) {
    if (moves_buffers && buffer.value.is_floating_point()) shared_.push_back(buffer);
  }
  initial_personal_ = clone(personal_);
}

LocalReport LocalTrainer::train(const data::Records& records, const data::Shard& shard, const StepContext& context,
                                const GradientTerm& extra) {
  const auto cross_entropy = [&](const data::Batch& batch) {
    return at::cross_entropy_loss(model_->logits(batch.x), batch.y);
  };
  return descend(records, shard, context, cross_entropy, extra);
}

LocalReport LocalTrainer::descend(const data::Records& records, const data::Shard& shard, const StepContext& context,
                                  const Loss& loss_of, const GradientTerm& extra,
                                  const std::function<void()>& stepped) {
  RandomStream order = context.stream("batch-order");
  LocalReport report;
  at::Tensor loss_sum = at::zeros({}, at::kDouble);
  with_optimizer(context, [&](const std::function<void()>& update) {
    for (int64_t epoch = 0; epoch < options_.local_epochs; ++epoch) {
      const at::Tensor rows = shuffled(shard.train, order);
      for (int64_t begin = 0; begin < rows.size(0); begin += options_.batch) {
        const int64_t count = std::min(options_.batch, rows.size(0) - begin);
        data::gather(records, rows.narrow(0, begin, count), batch_);
        flat_.zero_gradient();
        const at::Tensor loss = loss_of(batch_);
        loss.backward();
        if (extra) extra(flat_);
        update();
        if (stepped) stepped();
        loss_sum.add_(loss.detach(), static_cast<double>(count));
        report.samples += count;
      }
    }
  });
  report.loss = loss_sum.item<double>() / static_cast<double>(std::max<int64_t>(report.samples, 1));
  report.diverged = !std::isfinite(report.loss) || !at::isfinite(flat_.values()).all().item<bool>();
  return report;
}

void LocalTrainer::with_optimizer(const StepContext& context,
                                  const std::function<void(const std::function<void()>&)>& work) {
  model_->train();
  model_->set_generator(context.stream("dropout").torch_generator());
  at::Tensor flat = flat_.values();
  flat.mutable_grad() = flat_.gradient();
  const auto optimizer = make_optimizer(options_, flat);
  work([&] { optimizer->step(); });
}

at::Tensor LocalTrainer::predict(const at::Tensor& x) {
  const at::NoGradGuard no_grad;
  model_->eval();
  return model_->logits(x);
}

at::Tensor LocalTrainer::features(const at::Tensor& x) {
  const at::NoGradGuard no_grad;
  model_->eval();
  return model_->features(x);
}

}  // namespace sotto::methods
