#include "privacy/dpsgd/noisy_descent.h"

#include "base/error.h"
#include "privacy/access.h"
#include "privacy/dpsgd/batches.h"

#include <ATen/ATen.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace sotto::privacy {
namespace {

constexpr const char* kGradient = "gradient";
constexpr int64_t kAllocationSteps = 32;

}  // namespace

double RecordRates::largest() const {
  return *std::max_element(rates.begin(), rates.end());
}

double RecordRates::mean() const {
  return std::inner_product(rates.begin(), rates.end(), shares.begin(), 0.0);
}

bool DescentPlan::bounds_layers_together() const {
  return !layers.empty() && std::all_of(layers.begin(), layers.end(), [](const auto& l) { return l.weight == 0; });
}

int64_t DescentPlan::steps() const {
  return epochs * steps_per_epoch(*this);
}

int64_t DescentPlan::touches() const {
  return sampling == Sampling::kPoisson ? steps() : epochs;
}

bool DescentPlan::allocates() const {
  return sampling == Sampling::kAllocated || (sampling == Sampling::kDisjoint && is_one_sided(neighbours.adjacency));
}

int64_t DescentPlan::allocation() const {
  if (!allocates()) return 1;
  int64_t batches = batches_per_epoch(*this), scale = 1;
  for (; batches / scale >= kAllocationSteps; scale *= 2) {
  }
  return batches / scale * scale;
}

double DescentPlan::expected_batch() const {
  const auto n = static_cast<double>(records);
  if (sampling == Sampling::kPoisson) return std::max(1.0, n * (record_rates ? record_rates->mean() : rate));
  return std::max(1.0, n / static_cast<double>(batches_per_epoch(*this)));
}

NoisyDescent::NoisyDescent(models::Model& model, const models::FlatParameters& flat)
    : model_(model), flat_(flat), layers_(models::trainable_layers(model)) {}

GroupwiseGaussian NoisyDescent::mechanism(const DescentPlan& plan, double clip) const {
  const Adjacency adjacency = plan.neighbours.adjacency;
  if (!plan.layers.empty()) {
    SOTTO_INVARIANT(plan.layers.size() == layers_.size() && !plan.quantile);
    std::vector<Group> groups;
    std::vector<double> weights;
    for (size_t i = 0; i < layers_.size(); ++i) {
      if (!plan.layers[i].chosen()) continue;
      groups.push_back({layers_[i].name, static_cast<int64_t>(layers_[i].parameters.size()), layers_[i].coordinates(),
                        sum_sensitivity(plan.layers[i].clip, adjacency)});
      weights.push_back(plan.layers[i].weight);
    }
    if (plan.bounds_layers_together()) return GroupwiseGaussian::joint(plan.noise_multiplier, std::move(groups));
    return GroupwiseGaussian::calibrated(plan.noise_multiplier, std::move(groups), std::move(weights));
  }
  std::vector<Group> groups = {{kGradient, 1, flat_.gradient().numel(), sum_sensitivity(clip, adjacency)}};
  std::vector<double> weights = {1.0};
  if (plan.quantile) {
    groups.push_back(norm_group(*plan.quantile, adjacency, plan.sampling != Sampling::kDisjoint));
    if (plan.quantile->in_the_clear) {
      const double stddev = plan.noise_multiplier * groups.front().sensitivity;
      return GroupwiseGaussian::with_stddevs(std::move(groups), {stddev, 0});
    }
    const double share = below_weight(*plan.quantile, plan.noise_multiplier, plan.expected_batch());
    weights = {1.0 - share, share};
  }
  return GroupwiseGaussian::calibrated(plan.noise_multiplier, std::move(groups), std::move(weights));
}

double NoisyDescent::noise_norm(const DescentPlan& plan) const {
  return mechanism(plan, plan.clip).noise_norm(plan.quantile ? 1 : 0) / plan.expected_batch();
}

int64_t NoisyDescent::coordinates(const DescentPlan& plan) const {
  int64_t sum = 0;
  for (size_t i = 0; i < layers_.size(); ++i) {
    if (plan.layers.empty() || plan.layers[i].chosen()) sum += layers_[i].coordinates();
  }
  return sum;
}

void NoisyDescent::prepare_clipper(const DescentPlan& plan) {
  std::vector<bool> chosen;
  for (const LayerShare& layer : plan.layers) chosen.push_back(layer.chosen());
  const bool together = plan.bounds_layers_together();
  const auto usual_batch = static_cast<int64_t>(std::ceil(plan.expected_batch()));
  const bool vary = plan.sampling == Sampling::kPoisson || plan.allocates();
  if (clipper_ && chosen == clipped_ && together == clipped_together_ && plan.normalise == normalised_) {
    clipper_->expect_batches(usual_batch, vary);
    return;
  }
  ClipOptions options{.bound = plan.clip,
                      .joint = together,
                      .normalise = plan.normalise,
                      .usual_batch = usual_batch,
                      .batches_vary = vary};
  for (size_t i = 0; i < chosen.size(); ++i) {
    std::vector<std::string> names;
    for (const NamedTensor& parameter : layers_[i].parameters) names.push_back(parameter.name);
    if (chosen[i]) options.groups.push_back({.prefixes = names, .bound = plan.layers[i].clip});
    if (!chosen[i]) options.left_out.insert(options.left_out.end(), names.begin(), names.end());
  }
  clipper_ = std::make_unique<PerExampleClipper>(model_, flat_, std::move(options));
  clipped_ = std::move(chosen);
  clipped_together_ = together;
  normalised_ = plan.normalise;
}

void NoisyDescent::set_bounds(const DescentPlan& plan, double clip) {
  if (plan.layers.empty()) return clipper_->set_bounds({clip});
  std::vector<double> bounds;
  for (const LayerShare& layer : plan.layers) {
    if (layer.chosen()) bounds.push_back(layer.clip);
  }
  clipper_->set_bounds(bounds);
}

PerExampleClipper::Losses NoisyDescent::losses_over(Views views) const {
  return [this, views = std::move(views)](const at::Tensor& x, const at::Tensor& y) {
    at::Tensor total = cross_entropy(model_.logits(x), y);
    if (views.size() == 1) return total;
    for (size_t i = 1; i < views.size(); ++i) total = total + cross_entropy(model_.logits(views.of(x, i)), y);
    return total / static_cast<double>(views.size());
  };
}

void NoisyDescent::choose_slots(const data::Records& records) {
  std::vector<int64_t> shape = records.x.sizes().vec();
  shape[0] = 1;
  const at::Tensor none = at::zeros({1}, at::kLong);
  data::gather({.x = at::zeros(shape, records.x.options()), .y = none, .domain = none, .texts = {}}, none, batch_);
  RandomStream stream(0, "views-of-a-blank");
  clipper_->prepare(batch_.x, batch_.y, losses_over(Views(views_, stream)));
}

NamedTensors NoisyDescent::gradients(const DescentPlan& plan, const at::Tensor& sum) const {
  NamedTensors values;
  if (plan.layers.empty()) values.push_back({kGradient, sum});
  const int64_t begin = flat_.gradient().storage_offset();
  for (size_t i = 0; i < plan.layers.size(); ++i) {
    if (!plan.layers[i].chosen()) continue;
    for (const auto& [name, parameter] : layers_[i].parameters) {
      const at::Tensor own = parameter.grad();
      values.push_back({name, sum.narrow(0, own.storage_offset() - begin, own.numel())});
    }
  }
  return values;
}

NamedTensors NoisyDescent::released(const DescentPlan& plan) const {
  NamedTensors values = model_.shared_parameters();
  for (size_t i = 0; i < plan.layers.size(); ++i) {
    if (plan.layers[i].chosen()) continue;
    for (const NamedTensor& parameter : layers_[i].parameters) {
      std::erase_if(values, [&](const NamedTensor& value) { return value.name == parameter.name; });
    }
  }
  return clone(values);
}

Channel NoisyDescent::channel(const DescentPlan& plan, std::string what) const {
  Channel channel = Channel::gaussian(std::move(what), Observer::kServer, mechanism(plan, plan.clip), plan.neighbours,
                                      {.touches = plan.touches(), .draws = plan.steps()});
  channel.sampled_at(plan.sampling == Sampling::kPoisson ? plan.rate : 1.0).allocated_to(plan.allocation());
  if (plan.record_rates) {
    channel.sampled_at(plan.record_rates->largest())
        .noting("rates", plan.record_rates->rates)
        .noting("shares", plan.record_rates->shares);
  }
  return channel;
}

DescentResult NoisyDescent::run(const DescentPlan& plan, const Channel& channel, const data::Records& records,
                                const at::Tensor& indices, const ReleaseContext& context,
                                const std::function<void()>& update) {
  Receipt receipt = channel.pay(context);
  SOTTO_INVARIANT(mechanism(plan, plan.clip).is_paid_by(receipt));
  Batches batches(plan, indices, receipt, context);
  NoiseSource noise = context.noise_source(receipt, "noise");
  RandomStream view_stream(context.seed, "views", static_cast<uint64_t>(context.round),
                           static_cast<uint64_t>(context.client));
  prepare_clipper(plan);
  choose_slots(records);
  double clip = plan.clip;
  std::optional<NamedTensor> known;
  if (plan.quantile) known = first_statistic(*plan.quantile, clip);
  const bool by_steps = plan.quantile && plan.quantile->tracking == QuantileOptions::Tracking::kSteps;
  double loss = 0;
  int64_t samples = 0;
  for (int64_t epoch = 0; epoch < plan.epochs; ++epoch) {
    for (const at::Tensor& positions : batches.next_epoch()) {
      const int64_t count = positions.size(0);
      set_bounds(plan, clip);
      const Views views(views_, view_stream);  // of empty steps too: no later step may depend on which those are
      at::Tensor norms = at::empty({0}), clipped = flat_.gradient();
      if (count > 0) {
        data::gather(records, indices.index_select(0, positions), batch_);
        const ClippedSum sum = clipper_->sum_losses(batch_.x, batch_.y, losses_over(views));
        clipped = sum.gradient;
        norms = sum.norms;
        loss += sum.loss;
        samples += count;
      } else {
        flat_.zero_gradient();
      }
      NamedTensors values = gradients(plan, clipped);
      const GroupwiseGaussian gaussian = mechanism(plan, clip);
      if (plan.quantile) {
        values.push_back({gaussian.groups().back().name, norm_statistic(*plan.quantile, norms, clip)});
      }
      Bounded bounded =
          Access::bounded(values, gaussian.groups(), plan.bounds_layers_together() ? Norm::kJoint : Norm::kL2);
      gaussian.perturb(bounded, noise);
      if (!clipped.is_same(flat_.gradient())) flat_.gradient().copy_(clipped);
      flat_.gradient().div_(plan.expected_batch());
      update();
      if (by_steps) clip = next_bound(*plan.quantile, clip, values.back().value, plan.expected_batch());
      if (plan.quantile && !by_steps) known->value.add_(values.back().value);
    }
  }
  NamedTensors values = released(plan);
  if (by_steps) known->value.fill_(clip);
  if (known) values.push_back(*known);
  channel.append_declared(values);
  return {Access::release(std::move(values), std::move(receipt)),
          loss / static_cast<double>(std::max<int64_t>(samples, 1)), samples};
}

}  // namespace sotto::privacy
