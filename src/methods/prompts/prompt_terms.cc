#include "methods/prompts/prompt_terms.h"

#include "base/error.h"
#include "methods/parts/requirements.h"

#include <ATen/ATen.h>

namespace sotto::methods {
namespace {

void require_plain_descent(const FederationOptions& federation) {
  if (!federation.plain_descent()) {
    fail_user(
        "prompts are learnt by plain descent: leave federation.optimizer, momentum and weight_decay at their "
        "defaults");
  }
}

void require_countable_gradients(const PromptTerms& terms, const FederationOptions& federation) {
  if (!terms.as_printed && terms.options.clip_at != ClipAt::kPrompt) {
    fail_user(
        "method.clip_at: a trusted server adds up gradients of the global prompt, which must be bounded there; set "
        "clip_at = \"prompt\", or privacy.observer = \"server\"");
  }
  if (federation.local_epochs != 1 || terms.options.sampling == privacy::Sampling::kPoisson) {
    fail_user(
        "a trusted server counts every record once a round: set federation.local_epochs = 1 and method.batches = "
        "\"disjoint\"");
  }
}

// As printed a row is a batch. One prompt alone is told of batches in the order of the records, and one record less would
// change them all.
void require_rows_that_stay(const PromptTerms& terms) {
  if (!terms.as_printed || terms.options.shape.local != LocalPrompt::kNone) return;
  if (terms.neighbours.adjacency == privacy::Adjacency::kAddRemove) {
    fail_user(
        "privacy.adjacency: as printed, a record that is missing moves those behind it into other batches; set it to "
        "\"zero-out\" or \"replace\", or variant = \"sound\"");
  }
}

}  // namespace

PromptTerms prompt_terms(const PublicContext& context) {
  const RunSettings& spec = context.spec;
  PromptTerms terms{.options = spec.options_of<PromptOptions>()};
  require_plain_descent(spec.federation);
  if (context.facts.kind != data::Kind::kFeatures) {
    fail_user(
        "method {} learns from image features that are computed once: set data.features to the encoder's (\"{}\")",
        spec.method, terms.options.image_features);
  }
  terms.global_lr = terms.options.global_lr > 0 ? terms.options.global_lr : spec.federation.lr;
  terms.everyone = expected_cohort(spec) == spec.data.clients;
  const bool printed = spec.as_printed();
  if (printed) require_privacy(spec, privacy::Unit::kRecord);
  if (!spec.privacy || terms.options.in_the_clear) return terms;
  const privacy::PrivacyTerms& privacy = require_privacy(spec, privacy::Unit::kRecord);
  terms.neighbours = privacy.neighbours();
  terms.noise = privacy.trusts_server() ? PromptNoise::kServerToo : PromptNoise::kClients;
  terms.as_printed = printed;
  if (printed && terms.options.sampling == privacy::Sampling::kPoisson) {
    fail_user("method.batches: '{}' has disjoint batches in its paper; leave it out, or set variant = \"sound\"",
              spec.method);
  }
  if (!printed && terms.options.steps != 0) {
    fail_user(
        "method.steps: where records are bounded one by one a round is one pass over them; leave it out, or set "
        "variant = \"paper\"");
  }
  if (terms.trusts_server()) {
    require_countable_gradients(terms, spec.federation);
    require_rows_that_stay(terms);
  }
  return terms;
}

PromptLearner learner_of(const PublicContext& context, const PromptTerms& terms) {
  return make_prompt_learner(terms.options, context.facts.class_names, context.facts.task.record_shape.front());
}

NamedTensors named_alone(const std::string& name, const at::Tensor& value) {
  NamedTensors tensors;
  tensors.push_back({name, value});
  return tensors;
}

NamedTensors global_values(const at::Tensor& global) {
  return named_alone(prompt_names::kGlobal, global.clone());
}

}  // namespace sotto::methods
