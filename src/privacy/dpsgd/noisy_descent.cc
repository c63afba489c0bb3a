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
constexpr const char* kClipName = "clip";

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

// Σ_i (±½) over the gradients' norms: how many are below the bound, centred.
double centred_below(const at::Tensor& norms, double clip) {
  const double below = (norms <= clip).sum().item<double>();
  return below - static_cast<double>(norms.numel()) / 2;
}

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
    const ClipRule rule = below_rule();
    groups.push_back({rule.name, 1, 1, sum_sensitivity(rule.bound, adjacency)});
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
  double loss = 0;
  int64_t samples = 0;
  for (int64_t epoch = 0; epoch < plan.epochs; ++epoch) {
    for (const at::Tensor& positions : batches.next_epoch()) {
      const int64_t count = positions.size(0);
      clipper_->set_bounds({clip});
      NamedTensors values = {{kGradient, flat_.gradient()}};
      at::Tensor below = at::zeros({1});
      if (count > 0) {
        data::gather(records, indices.index_select(0, positions), batch_);
        const ClippedSum sum = clipper_->sum(batch_.x, batch_.y);
        below.fill_(centred_below(sum.norms, clip));
        loss += sum.loss;
        samples += count;
      } else {
        flat_.zero_gradient();
      }
      const GroupwiseGaussian gaussian = mechanism(plan, clip);
      if (plan.quantile) values.push_back({below_rule().name, below});
      Bounded bounded = Access::bounded(values, gaussian.groups(), Norm::kL2);
      gaussian.perturb(bounded, noise);
      flat_.gradient().div_(plan.expected_batch());
      update();
      if (plan.quantile) clip = next_bound(*plan.quantile, clip, below, plan.expected_batch());
    }
  }
  NamedTensors released = clone(model_.shared_parameters());
  if (plan.quantile) released.push_back({kClipName, at::scalar_tensor(clip, at::kDouble)});
  return {Access::release(std::move(released), std::move(receipt)),
          loss / static_cast<double>(std::max<int64_t>(samples, 1)), samples};
}

}  // namespace sotto::privacy
