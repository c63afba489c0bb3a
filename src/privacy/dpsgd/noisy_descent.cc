#include "privacy/dpsgd/noisy_descent.h"

#include "base/error.h"
#include "privacy/access.h"
#include "privacy/dpsgd/samplers.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

namespace sotto::privacy {
namespace {

constexpr const char* kGradient = "gradient";

int64_t batches_per_epoch(const DescentPlan& plan) {
  return std::max<int64_t>(1, (plan.records + plan.batch - 1) / plan.batch);
}

int64_t steps_per_epoch(const DescentPlan& plan) {
  if (plan.sampling == Sampling::kDisjoint) return batches_per_epoch(plan);
  return static_cast<int64_t>(std::ceil(1.0 / plan.rate - 1e-9));
}

// Positions into the client's records, step after step of one epoch. Who is in which batch is as secret as the noise: a
// Poisson batch is amplified for that, and under add-remove a known assignment by position would shift with a record
// that disappears. Secret, it is an average over assignments that leave all others where they are.
class Batches {
 public:
  Batches(const DescentPlan& plan, int64_t records, const ReleaseContext& context)
      : plan_(plan),
        records_(records),
        secret_(context.noise_source("batches")),
        order_(secret_.bits(), "batch-order") {}

  std::vector<at::Tensor> next_epoch() {
    if (plan_.sampling == Sampling::kPoisson) {
      std::vector<at::Tensor> batches;
      for (int64_t i = 0; i < steps_per_epoch(plan_); ++i) {
        batches.push_back(poisson_batch(records_, plan_.rate, secret_));
      }
      return batches;
    }
    if (plan_.neighbours.adjacency == Adjacency::kAddRemove) {
      return scattered_epoch(records_, batches_per_epoch(plan_), order_);
    }
    return sliced_epoch(records_, plan_.batch, order_);
  }

 private:
  const DescentPlan& plan_;
  int64_t records_;
  NoiseSource secret_;
  RandomStream order_;
};

}  // namespace

int64_t DescentPlan::steps() const {
  return epochs * steps_per_epoch(*this);
}

int64_t DescentPlan::touches() const {
  return sampling == Sampling::kPoisson ? steps() : epochs;
}

double DescentPlan::expected_batch() const {
  const auto n = static_cast<double>(records);
  return std::max(1.0, sampling == Sampling::kPoisson ? n * rate : n / static_cast<double>(batches_per_epoch(*this)));
}

NoisyDescent::NoisyDescent(models::Model& model, const models::FlatParameters& flat) : model_(model), flat_(flat) {}

GroupwiseGaussian NoisyDescent::mechanism(const DescentPlan& plan, double clip) const {
  const Adjacency adjacency = plan.neighbours.adjacency;
  std::vector<Group> groups = {{kGradient, 1, flat_.gradient().numel(), sum_sensitivity(clip, adjacency)}};
  std::vector<double> weights = {1.0};
  if (plan.quantile) {
    groups.push_back(norm_group(*plan.quantile, adjacency));
    const double share = below_weight(*plan.quantile, plan.noise_multiplier, plan.expected_batch());
    weights = {1.0 - share, share};
  }
  return GroupwiseGaussian::calibrated(plan.noise_multiplier, std::move(groups), std::move(weights));
}

Event NoisyDescent::event(const DescentPlan& plan, const ReleaseContext& context, const std::string& what) const {
  Event event =
      mechanism(plan, plan.clip).event(context, plan.neighbours, what, "server", plan.touches(), plan.steps());
  event.sampling_rate = plan.sampling == Sampling::kPoisson ? plan.rate : 1.0;
  return event;
}

DescentResult NoisyDescent::run(const DescentPlan& plan, Receipt receipt, const data::Records& records,
                                const at::Tensor& indices, const ReleaseContext& context,
                                const std::function<void()>& update) {
  Batches batches(plan, indices.size(0), context);
  NoiseSource noise = context.noise_source("noise");
  if (!clipper_) clipper_ = std::make_unique<PerExampleClipper>(model_, flat_, ClipOptions{.bound = plan.clip});
  double clip = plan.clip;
  std::optional<NamedTensor> known;
  if (plan.quantile) known = first_statistic(*plan.quantile, clip);
  const bool by_steps = plan.quantile && plan.quantile->tracking == QuantileOptions::Tracking::kSteps;
  double loss = 0;
  int64_t samples = 0;
  for (int64_t epoch = 0; epoch < plan.epochs; ++epoch) {
    for (const at::Tensor& positions : batches.next_epoch()) {
      const int64_t count = positions.size(0);
      clipper_->set_bounds({clip});
      NamedTensors values = {{kGradient, flat_.gradient()}};
      at::Tensor norms = at::empty({0});
      if (count > 0) {
        data::gather(records, indices.index_select(0, positions), batch_);
        const ClippedSum sum = clipper_->sum(batch_.x, batch_.y);
        norms = sum.norms;
        loss += sum.loss;
        samples += count;
      } else {
        flat_.zero_gradient();
      }
      const GroupwiseGaussian gaussian = mechanism(plan, clip);
      if (plan.quantile) {
        values.push_back({gaussian.groups().back().name, norm_statistic(*plan.quantile, norms, clip)});
      }
      Bounded bounded = Access::bounded(values, gaussian.groups(), Norm::kL2);
      gaussian.perturb(bounded, noise);
      flat_.gradient().div_(plan.expected_batch());
      update();
      if (by_steps) clip = next_bound(*plan.quantile, clip, values.back().value, plan.expected_batch());
      if (plan.quantile && !by_steps) known->value.add_(values.back().value);
    }
  }
  NamedTensors released = clone(model_.shared_parameters());
  if (by_steps) known->value.fill_(clip);
  if (known) released.push_back(*known);
  for (const NamedTensor& value : plan.declared) released.push_back(value);
  return {Access::release(std::move(released), std::move(receipt)),
          loss / static_cast<double>(std::max<int64_t>(samples, 1)), samples};
}

}  // namespace sotto::privacy
