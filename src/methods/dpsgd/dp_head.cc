#include "methods/dpsgd/dp_head.h"

#include "methods/dpsgd/noisy_training.h"
#include "methods/parts/averaging.h"
#include "privacy/neighbours.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>

namespace sotto::methods {
namespace {

// The last iterate travels under these names; the models' own names carry the average.
constexpr const char* kIterate = "iterate.";

struct ServerOptions {
  double momentum = 0.8;
  double averaging = 8.0;  // iterate t counts t^averaging; 0: the last one alone
};

struct StepRule {
  double logit_noise = 1.2;
  double largest_step = 200;  // what a step with momentum comes to in the end
  double momentum = 0;
};

double step_size(const StepRule& rule, const PublicContext& context, const privacy::DescentPlan& plan) {
  const double sensitivity = privacy::sum_sensitivity(1.0, plan.neighbours.adjacency);
  const auto steps = static_cast<double>(plan.steps() * context.spec.rounds);
  const double noise = std::sqrt(steps) * plan.noise_multiplier * sensitivity /
                       (plan.expected_batch() * std::sqrt(static_cast<double>(expected_cohort(context.spec))));
  return (1 - rule.momentum) * std::min(rule.logit_noise / noise, rule.largest_step);
}

class HeadServer : public ServerMethod {
 public:
  HeadServer(NamedTensors start, const ServerOptions& options)
      : options_(options),
        averaged_(clone(start)),
        iterate_(clone(start)),
        velocity_(clone(start)),
        mean_(make_averaging_server_from(std::move(start))) {
    scale(velocity_, 0.0);
  }

  Broadcast open() override { return broadcast(0); }

  void accept(const privacy::Upload& upload) override {
    mean_->accept(upload);
    heard_ = true;
  }

  Broadcast aggregate(const RoundContext& context) override {
    if (heard_) move_by(mean_->aggregate(context).values);
    heard_ = false;
    return broadcast(context.round());
  }

  NamedTensors state() const override {
    NamedTensors values = prefixed("velocity.", velocity_);
    values.push_back({"steps", at::scalar_tensor(steps_, at::kDouble)});
    values.push_back({"weight", at::scalar_tensor(weight_, at::kDouble)});
    return values;
  }

  void restore(const Broadcast& last, const NamedTensors& state) override {
    for (size_t i = 0; i < iterate_.size(); ++i) {
      averaged_[i].value.copy_(find_tensor(last.values, averaged_[i].name));
      iterate_[i].value.copy_(find_tensor(last.values, kIterate + iterate_[i].name));
      velocity_[i].value.copy_(find_tensor(state, "velocity." + velocity_[i].name));
    }
    steps_ = find_tensor(state, "steps").item<double>();
    weight_ = find_tensor(state, "weight").item<double>();
  }

 private:
  static NamedTensors prefixed(const std::string& prefix, const NamedTensors& tensors) {
    NamedTensors values = clone(tensors);
    for (NamedTensor& tensor : values) tensor.name = prefix + tensor.name;
    return values;
  }

  Broadcast broadcast(int64_t round) const {
    Broadcast sent{.round = round, .values = clone(averaged_)};
    for (NamedTensor& tensor : prefixed(kIterate, iterate_)) sent.values.push_back(std::move(tensor));
    return sent;
  }

  void move_by(const NamedTensors& mean) {
    steps_ += 1;
    const double own = options_.averaging > 0 ? std::pow(steps_, options_.averaging) : 1;
    weight_ = options_.averaging > 0 ? weight_ + own : 1;
    for (size_t i = 0; i < iterate_.size(); ++i) {
      at::Tensor &iterate = iterate_[i].value, &velocity = velocity_[i].value;
      velocity.mul_(options_.momentum).add_(find_tensor(mean, iterate_[i].name) - iterate);
      iterate.add_(velocity);
      averaged_[i].value.lerp_(iterate, own / weight_);
    }
  }

  ServerOptions options_;
  NamedTensors averaged_, iterate_, velocity_;
  std::unique_ptr<ServerMethod> mean_;  // of a round's models
  double steps_ = 0, weight_ = 0;
  bool heard_ = false;
};

NoisyTraining read_options(settings::Section& section) {
  NoisyTraining o;
  o.normalise = true;
  o.full_batch = section.one_of("steps", "full", {"full", "allocated"}) == "full";
  o.weigh_by_noise = section.one_of("weights", "records", {"records", "noise"}) == "noise";
  ServerOptions server;
  server.momentum = section.number("momentum", server.momentum, {.low = 0, .high = 1, .high_excluded = true});
  server.averaging = section.number("averaging", server.averaging, settings::kNonNegative);
  StepRule rule;
  rule.momentum = server.momentum;
  rule.logit_noise = section.number("logit_noise", rule.logit_noise, settings::kPositive);
  rule.largest_step = section.number("largest_step", rule.largest_step, settings::kPositive);
  o.step_size = [rule](const PublicContext& context, const privacy::DescentPlan& plan) {
    return step_size(rule, context, plan);
  };
  o.server = [server](NamedTensors start) -> std::unique_ptr<ServerMethod> {
    return std::make_unique<HeadServer>(std::move(start), server);
  };
  o.start = kIterate;
  return o;
}

}  // namespace

MethodEntry dp_head() {
  return noisy_training("dp-head",
                        "a linear head on fixed features by few noisy steps over all records; nothing to tune",
                        "after Bu et al., NeurIPS 2023", read_options, PaperVariant::kNone);
}

}  // namespace sotto::methods
