#include "methods/dpsgd/dp_head.h"

#include "base/error.h"
#include "methods/dpsgd/noisy_training.h"
#include "methods/parts/iterates.h"
#include "privacy/neighbours.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>

namespace sotto::methods {
namespace {

struct StepRule {
  double logit_noise = 1.2;
  double largest_step = 200;  // what a step with momentum comes to in the end
  double momentum = 0;
  double kept = 0;
};

// The variance of one step's noise that is in a model by the end, in rounds: what is in the mean of all clients, and what is in
// the distance from it.
double rounds_of_noise(const StepRule& rule, double rounds, double clients) {
  const double kept = rule.kept * rule.kept;
  const double own = kept < 1 ? kept * (1 - std::pow(kept, rounds)) / (1 - kept) : rounds;
  return rounds / clients + own * (1 - 1 / clients);
}

double step_size(const StepRule& rule, const PublicContext& context, const privacy::DescentPlan& plan) {
  const double sensitivity = privacy::sum_sensitivity(1.0, plan.neighbours.adjacency);
  const double rounds = rounds_of_noise(rule, static_cast<double>(context.spec.planned_rounds()),
                                        static_cast<double>(expected_cohort(context.spec)));
  const double noise = std::sqrt(static_cast<double>(plan.steps()) * rounds) * plan.noise_multiplier * sensitivity /
                       plan.expected_batch();
  return (1 - rule.momentum) * std::min(rule.logit_noise / noise, rule.largest_step);
}

// [federation] has nothing to say of a step that follows from the noise.
void refuse_optimisers(const FederationOptions& federation) {
  const FederationOptions unset;
  const char* key = federation.lr != unset.lr                 ? "lr"
                    : federation.optimizer != unset.optimizer ? "optimizer"
                    : federation.momentum != unset.momentum   ? "momentum"
                    : federation.weight_decay != 0            ? "weight_decay"
                                                              : nullptr;
  if (key == nullptr) return;
  fail_user(
      "federation.{} is not used by 'dp-head', whose step follows from its noise: leave it out (method.logit_noise "
      "and method.largest_step change the step, method.momentum is the server's)",
      key);
}

NoisyTraining read_steps(settings::Section& section, StepRule rule) {
  NoisyTraining o;
  o.normalise = true;
  o.full_batch = section.one_of("steps", "full", {"full", "allocated"}) == "full";
  if (!o.full_batch) o.sampling = privacy::Sampling::kAllocated;
  o.weigh_by_noise = section.one_of("weights", "records", {"records", "noise"}) == "noise";
  rule.logit_noise = section.number("logit_noise", rule.logit_noise, settings::kPositive);
  rule.largest_step = section.number("largest_step", rule.largest_step, settings::kPositive);
  o.step_size = [rule](const PublicContext& context, const privacy::DescentPlan& plan) {
    return step_size(rule, context, plan);
  };
  return o;
}

}  // namespace

NoisyTraining read_head_steps(settings::Section& section, double kept) {
  return read_steps(section, {.kept = kept});
}

NoisyTraining read_head_options(settings::Section& section) {
  IterateOptions server{.momentum = 0.8, .averaging = 8.0};
  server.momentum = section.number("momentum", server.momentum, {.low = 0, .high = 1, .high_excluded = true});
  server.averaging = section.number("averaging", server.averaging, settings::kNonNegative);
  NoisyTraining o = read_steps(section, {.momentum = server.momentum});
  o.server = [server](NamedTensors start) { return make_iterate_server(std::move(start), server); };
  o.start = kIteratePrefix;
  return o;
}

MethodEntry dp_head() {
  MethodEntry entry =
      noisy_training("dp-head", "a linear head on fixed features by few noisy steps over all records; nothing to tune",
                     "after Bu et al., NeurIPS 2023", read_head_options, PaperVariant::kNone);
  entry.plan = [inner = entry.plan](const PublicContext& context, const ClientFacts& client) {
    refuse_optimisers(context.spec.federation);
    if (context.spec.model.lora.rank > 0) {
      fail_user(
          "model.lora: 'dp-head' trains a linear head, whose step follows from its noise: leave it out, or train "
          "low-rank "
          "paths by 'ldp-fedavg'");
    }
    return inner(context, client);
  };
  return entry;
}

}  // namespace sotto::methods
