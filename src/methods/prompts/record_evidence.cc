#include "methods/prompts/record_evidence.h"

#include <ATen/ATen.h>

#include <vector>

namespace sotto::methods {

PromptLearner::Evidence evidence_of_batch(const PromptLearner& learner, const at::Tensor& x, const at::Tensor& y) {
  return learner.evidence(learner.classes().model().image_features(x), y);
}

PromptLearner::Evidence evidence_in_slots(const PromptLearner& learner, const at::Tensor& x, const at::Tensor& y,
                                          privacy::FixedSlots& slots) {
  const auto found = slots.apply({x, y}, [&](const std::vector<at::Tensor>& records) -> std::vector<at::Tensor> {
    const auto some = evidence_of_batch(learner, records[0], records[1]);
    if (!some.errors.defined()) return {some.losses, some.images};
    return {some.losses, some.images, some.errors};
  });
  return {.losses = found[0], .errors = found.size() > 2 ? found[2] : at::Tensor(), .images = found[1]};
}

std::optional<privacy::FixedSlots> slots_of(const PublicContext& context, const PromptTerms& terms) {
  if (terms.noise == PromptNoise::kNobody) return std::nullopt;
  const bool vary =
      terms.options.sampling == privacy::Sampling::kPoisson || privacy::is_one_sided(terms.neighbours.adjacency);
  return privacy::FixedSlots(privacy::suited_slots(context.spec.federation.batch, vary));
}

}  // namespace sotto::methods
