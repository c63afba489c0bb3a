// Every record's gradient is bounded, and the noise is calibrated to the client's budget.
#include "methods/prompts/prompt_gradients.h"
#include "privacy/calibration.h"
#include "privacy/outer_products.h"

#include <ATen/ATen.h>

#include <algorithm>

namespace sotto::methods {
namespace {

constexpr const char* kTextFeatures = "text features";

// What keeps a client's budget over all steps of all rounds that it takes part in.
double multiplier_of_steps(const PublicContext& context, const privacy::DescentPlan& plan, const ClientFacts& client) {
  return privacy::noise_multiplier_for(client.epsilon, context.spec.privacy->delta,
                                       plan.touches() * std::max<int64_t>(client.participations, 1), plan.rate,
                                       plan.neighbours.adjacency, plan.allocation());
}

// What keeps the least budget if a record is told once a round to the server and, where there is a local prompt, once
// to that.
double multiplier_of_rounds(const PublicContext& context, const PromptTerms& terms) {
  const int64_t tellings = terms.options.shape.local == LocalPrompt::kNone ? 1 : 2;
  const int64_t most = std::max<int64_t>(1, context.facts.most_participations);
  return privacy::noise_multiplier_for(context.spec.privacy->least_budget(), context.spec.privacy->delta,
                                       tellings * most, 1.0, terms.neighbours.adjacency);
}

// By the text features, where nothing need be pulled back before it has noise: once for a batch, not for each record.
class TextGradients : public PromptGradients {
 public:
  using PromptGradients::PromptGradients;

  double step_bound(const privacy::DescentPlan& plan) const override {
    return terms().options.clip * plan.expected_batch();
  }

  privacy::Bounded bounded(const PromptLearner& learner, const PromptLearner::Evidence& evidence) const override {
    const auto rules = rules_of(parts(learner));
    if (!evidence.errors.defined()) {
      return privacy::clip_each(privacy::Contribution(named_alone(kTextFeatures, evidence.images)), rules, 1.0,
                                adjacency());
    }
    NamedTensors factors = named_alone("errors", evidence.errors);
    factors.push_back({"images", evidence.images});
    return privacy::clip_outer_products(privacy::Contribution(std::move(factors)), rules.front(), adjacency());
  }

  NamedTensors gradients(const PromptLearner& learner, const NamedTensors& noisy,
                         const privacy::DescentPlan& plan) const override {
    return learner.pull_back(noisy.front().value.flatten() / plan.expected_batch());
  }

 protected:
  std::vector<Part> parts(const PromptLearner& learner) const override {
    return {{kTextFeatures, 1, learner.feature_coordinates()}};
  }

  double step_multiplier(const privacy::DescentPlan& plan, const ClientFacts& client) const override {
    return multiplier_of_steps(context(), plan, client);
  }

  privacy::GroupwiseGaussian mechanism(std::vector<privacy::Group> groups, double multiplier) const override {
    return privacy::GroupwiseGaussian::calibrated(multiplier, std::move(groups));
  }
};

// By the prompts: a row is a record.
class RecordRows : public PromptRows {
 public:
  RecordRows(const PublicContext& context, const PromptTerms& terms) : PromptRows(context, terms) {
    if (terms.trusts_server()) multiplier_of_rounds_ = multiplier_of_rounds(context, terms);
  }

  double step_bound(const privacy::DescentPlan& plan) const override {
    return terms().options.clip * plan.expected_batch();
  }

  NamedTensors rows(const PromptLearner& learner, const PromptLearner::Evidence& evidence) const override {
    return learner.pull_back_each(evidence);
  }

  NamedTensors gradients(const PromptLearner&, const NamedTensors& noisy,
                         const privacy::DescentPlan& plan) const override {
    NamedTensors gradients = clone(noisy);
    scale(gradients, 1.0 / plan.expected_batch());
    return gradients;
  }

  double server_divisor() const override {
    return static_cast<double>(expected_cohort(context().spec)) * static_cast<double>(context().spec.federation.batch);
  }

 protected:
  std::vector<Part> parts(const PromptLearner& learner) const override {
    const bool global = !terms().trusts_server();
    const int64_t tensors = std::ssize(learner.parameter_shapes()) - (global ? 0 : 1);
    return {{prompt_names::kPrompts, tensors, learner.prompt_coordinates(learner.has_local(), global)}};
  }

  double step_multiplier(const privacy::DescentPlan& plan, const ClientFacts& client) const override {
    return terms().trusts_server() ? multiplier_of_rounds_ : multiplier_of_steps(context(), plan, client);
  }

  double server_multiplier() const override { return multiplier_of_rounds_; }

  privacy::GroupwiseGaussian mechanism(std::vector<privacy::Group> groups, double multiplier) const override {
    return privacy::GroupwiseGaussian::calibrated(multiplier, std::move(groups));
  }

 private:
  double multiplier_of_rounds_ = 0;  // of a trusted server and of the clients beside it
};

}  // namespace

std::unique_ptr<PromptGradients> make_sound_text_gradients(const PublicContext& context, const PromptTerms& terms) {
  return std::make_unique<TextGradients>(context, terms);
}

std::unique_ptr<PromptRows> make_sound_rows(const PublicContext& context, const PromptTerms& terms) {
  return std::make_unique<RecordRows>(context, terms);
}

}  // namespace sotto::methods
