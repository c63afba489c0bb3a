#include "methods/prompts/prompt_gradients.h"

#include <ATen/ATen.h>

#include <fmt/format.h>

#include <algorithm>

namespace sotto::methods {

privacy::NoisySteps PromptGradients::steps(const PromptLearner& learner, const ClientFacts& client) const {
  const FederationOptions& federation = context_.spec.federation;
  privacy::DescentPlan plan;
  plan.records = client.records;
  plan.batch = federation.batch;
  plan.epochs = federation.local_epochs;
  plan.sampling = terms_.options.sampling;
  if (plan.sampling == privacy::Sampling::kPoisson) {
    plan.rate = std::min(1.0, static_cast<double>(federation.batch) / std::max(1.0, context_.facts.average_records));
  }
  plan.clip = terms_.options.clip;
  plan.neighbours = terms_.neighbours;
  plan.noise_multiplier = step_multiplier(plan, client);
  return {plan, mechanism(groups_of(parts(learner)), plan.noise_multiplier), terms_.options.steps};
}

privacy::Channel PromptGradients::steps_channel(const privacy::NoisySteps& steps, const ClientFacts& client) const {
  const int64_t count = steps.steps();
  return (terms_.trusts_server() ? steps.channel(prompt_names::kLocalPrompt, privacy::Observer::kClients)
                                 : steps.channel(prompt_names::kPrompts, privacy::Observer::kServer))
      .times(client.participations,
             fmt::format("once per participation, after {} noisy step{}", count, count == 1 ? "" : "s"))
      .claiming(claim(client.epsilon));
}

std::vector<privacy::Group> PromptGradients::groups_of(const std::vector<Part>& parts) const {
  const double sensitivity = privacy::sum_sensitivity(terms_.options.clip, adjacency());
  std::vector<privacy::Group> groups;
  for (const Part& part : parts) groups.push_back({part.name, part.tensors, part.coordinates, sensitivity});
  return groups;
}

std::vector<privacy::ClipRule> PromptGradients::rules_of(const std::vector<Part>& parts) const {
  std::vector<privacy::ClipRule> rules;
  for (const Part& part : parts) rules.push_back({part.name, part.tensors, terms_.options.clip});
  return rules;
}

privacy::Bounded PromptRows::bounded_rows(const PromptLearner& learner, NamedTensors rows) const {
  return privacy::clip_each(privacy::Contribution(std::move(rows)), rules_of(parts(learner)), 1.0, adjacency());
}

privacy::Bounded PromptRows::bounded_global(const at::Tensor& rows) const {
  return privacy::clip_each(privacy::Contribution(named_alone(prompt_names::kGlobalGradient, rows)),
                            {{prompt_names::kGlobalGradient, 1, terms().options.clip}}, 1.0, adjacency());
}

privacy::GroupwiseGaussian PromptRows::server_mechanism(const PromptLearner& learner) const {
  return mechanism(groups_of({{prompt_names::kGlobalGradient, 1, learner.prompt_coordinates(false, true)}}),
                   server_multiplier());
}

privacy::Channel PromptRows::server_channel(const privacy::GroupwiseGaussian& mechanism, double epsilon,
                                            int64_t times) const {
  return privacy::Channel::gaussian(prompt_names::kGlobalPrompt, privacy::Observer::kClients, mechanism,
                                    terms().neighbours)
      .times(times, terms().everyone ? "every round" : "every round, for those who take part")
      .claiming(claim(epsilon));
}

std::unique_ptr<PromptGradients> make_prompt_gradients(const PublicContext& context, const PromptTerms& terms) {
  const bool in_rows = terms.as_printed || terms.options.clip_at == ClipAt::kPrompt;
  if (in_rows) return make_prompt_rows(context, terms);
  return make_sound_text_gradients(context, terms);
}

std::unique_ptr<PromptRows> make_prompt_rows(const PublicContext& context, const PromptTerms& terms) {
  return terms.as_printed ? make_printed_rows(context, terms) : make_sound_rows(context, terms);
}

privacy::Channel gradient_channel(const RunSettings& spec, const ClientFacts& client) {
  return privacy::Channel::to_trusted_server(prompt_names::kGlobalGradient,
                                             privacy::TrustedServer::declared_by(spec.privacy, spec.method))
      .times(client.participations, "once per participation");
}

}  // namespace sotto::methods
