// What records say of the prompts of a step, from records as data.features gave them.
#pragma once

#include "methods/prompts/prompt_learner.h"
#include "methods/prompts/prompt_terms.h"
#include "privacy/dpsgd/slots.h"

#include <ATen/core/Tensor.h>

#include <optional>

namespace sotto::methods {

// All of them at once.
PromptLearner::Evidence evidence_of_batch(const PromptLearner& learner, const at::Tensor& x, const at::Tensor& y);

// The same, of each record to the last bit what it would be alone, or among any others.
PromptLearner::Evidence evidence_in_slots(const PromptLearner& learner, const at::Tensor& x, const at::Tensor& y,
                                          privacy::FixedSlots& slots);

// What a run's clients need for that: nothing where nobody adds noise.
std::optional<privacy::FixedSlots> slots_of(const PublicContext& context, const PromptTerms& terms);

}  // namespace sotto::methods
