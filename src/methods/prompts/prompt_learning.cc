#include "methods/prompts/prompt_learning.h"

#include "methods/prompts/prompt_client.h"
#include "methods/prompts/prompt_server.h"

namespace sotto::methods {
namespace {

// Steps at the client, whose noise moves a prompt in so many turns.
privacy::Channel planned_steps(const PromptGradients& gradients, const PromptLearner& learner,
                               const ClientFacts& client, double turns) {
  const privacy::NoisySteps steps = gradients.steps(learner, client);
  privacy::Channel channel = gradients.steps_channel(steps, client);
  channel.reaching({.coordinates = steps.mechanism().coordinates(),
                    .bound = gradients.step_bound(steps.plan()),
                    .noise_stddev = steps.mechanism().noise_stddev(0),
                    .summands = turns * static_cast<double>(steps.steps())});
  return channel;
}

// The trusted server's sum.
privacy::Channel planned_sum(const PublicContext& context, const PromptTerms& terms, const PromptRows& rows,
                             const PromptLearner& learner, const ClientFacts& client) {
  const auto mechanism = rows.server_mechanism(learner);
  privacy::Channel channel = rows.server_channel(
      mechanism, client.epsilon, terms.everyone ? context.spec.planned_rounds() : client.participations);
  channel.reaching({.coordinates = mechanism.coordinates(),
                    .bound = terms.options.clip * static_cast<double>(expected_cohort(context.spec) * client.records),
                    .noise_stddev = mechanism.noise_stddev(0),
                    .summands = static_cast<double>(context.spec.planned_rounds())});
  return channel;
}

ReleasePlan plan_with_trusted_server(const PublicContext& context, const PromptTerms& terms,
                                     const ClientFacts& client) {
  const auto rows = make_prompt_rows(context, terms);
  const PromptLearner learner = learner_of(context, terms);
  ReleasePlan plan;
  if (learner.has_local()) {
    plan.push_back(planned_steps(*rows, learner, client, static_cast<double>(client.participations)));
  }
  plan.push_back(gradient_channel(context.spec, client));
  plan.push_back(planned_sum(context, terms, *rows, learner, client));
  return plan;
}

ReleasePlan plan(const PublicContext& context, const PromptTerms& terms, const ClientFacts& client) {
  if (terms.trusts_server()) return plan_with_trusted_server(context, terms, client);
  if (terms.noise == PromptNoise::kNobody) {
    learner_of(context, terms);  // a rank that there cannot be is an error without noise, too
    return {clear_prompt_channel(client)};
  }
  const auto gradients = make_prompt_gradients(context, terms);
  const double turns = static_cast<double>(expected_cohort(context.spec) * context.spec.planned_rounds());
  return {planned_steps(*gradients, learner_of(context, terms), client, turns)};
}

LocalPrompt local_prompt(const RunSettings& spec) {
  return spec.options_of<PromptOptions>().shape.local;
}

}  // namespace

MethodEntry prompt_learning(std::string name, std::string what, std::string citation, PromptReader read) {
  return {
      .name = std::move(name),
      .what = std::move(what),
      .citation = std::move(citation),
      .family = "prompts",
      .units = {privacy::Unit::kRecord},
      .observers = {privacy::Observer::kServer, privacy::Observer::kClients, privacy::Observer::kPublic},
      .variants = {Variant::kSound, Variant::kPaper},
      .read_options = [read](settings::Section& section) { return std::any(read(section)); },
      .example_options = {"encoder=\"tiny\""},
      .uses_model = false,
      .plan = [](const PublicContext& context,
                 const ClientFacts& client) { return plan(context, prompt_terms(context), client); },
      .personal = [](const RunSettings& spec) { return local_prompt(spec) != LocalPrompt::kNone; },
      .personal_is_noisy =
          [](const RunSettings& spec) { return spec.privacy && !spec.options_of<PromptOptions>().in_the_clear; },
      .global = [](const RunSettings& spec) { return local_prompt(spec) == LocalPrompt::kNone; },
      .make_client = [](const ClientContext& context) { return make_prompt_client(context, prompt_terms(context)); },
      .make_server = [](const PublicContext& context) { return make_prompt_server(context, prompt_terms(context)); },
      .upload_shape =
          [](const PublicContext& context, const Broadcast& broadcast) {
            return prompt_upload_shape(context, prompt_terms(context), broadcast);
          }};
}

}  // namespace sotto::methods
