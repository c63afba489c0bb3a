#include "methods/prompts/prompt_client.h"

#include <ATen/ATen.h>

#include <algorithm>

namespace sotto::methods {

StepResult PromptClient::step(const Broadcast& broadcast, const data::Shard& shard, privacy::PrivateState& state,
                              const StepContext& context) {
  const at::NoGradGuard no_grad;
  RandomStream first(context.seed, "first-local-prompt", 0, static_cast<uint64_t>(context.release.client));
  learner_.set(find_tensor(broadcast.values, prompt_names::kGlobal),
               state.empty() ? learner_.first_local(first) : state.values());
  text_ = at::Tensor();
  Round round{.shard = shard, .context = context, .start = context.stream("factors")};
  StepResult result;
  result.upload = train(round);
  result.report = {round.loss / static_cast<double>(std::max<int64_t>(round.samples, 1)), round.samples};
  result.report.noise_norm = round.noise_norm;
  NamedTensors trained = learner_.local();
  result.report.diverged = !all_finite(trained) || !at::isfinite(learner_.global()).all().item<bool>();
  if (result.report.diverged) {
    result.upload.reset();
  } else if (!trained.empty()) {
    state = privacy::PrivateState(std::move(trained));
  }
  return result;
}

void PromptClient::select(const Broadcast& broadcast, const privacy::PrivateState& state) {
  learner_.set(find_tensor(broadcast.values, prompt_names::kGlobal), state.values());
  text_ = at::Tensor();
}

at::Tensor PromptClient::predict(const at::Tensor& x) {
  const at::NoGradGuard no_grad;
  if (!text_.defined()) text_ = learner_.classes().text_features(learner_.prompts());
  const models::VisionLanguage& model = learner_.classes().model();
  return prompt_logits(text_, model.image_features(x), model.temperature(), terms_.options.shape.transport);
}

at::Tensor PromptClient::features(const at::Tensor& x) {
  const at::NoGradGuard no_grad;
  return learner_.classes().model().image_features(x);
}

NamedTensors PromptClient::selected_weights() const {
  return named_alone("prompt", learner_.prompts());
}

PromptLearner::Evidence PromptClient::look_at(const at::Tensor& positions, Round& round) {
  learner_.begin_step(round.start);
  data::gather(context_.records, round.shard.train.index_select(0, positions), batch_);
  auto evidence = slots_ ? evidence_in_slots(learner_, batch_.x, batch_.y, *slots_)
                         : evidence_of_batch(learner_, batch_.x, batch_.y);
  round.loss += evidence.loss();
  round.samples += positions.size(0);
  return evidence;
}

void PromptClient::descend(NamedTensors gradients) {
  for (const auto& [name, value] : learner_.public_terms()) {
    if (at::Tensor gradient = find_tensor(gradients, name); gradient.defined()) gradient.add_(value);
  }
  learner_.descend(gradients, context_.spec.federation.lr, terms_.global_lr);
}

std::unique_ptr<ClientMethod> make_prompt_client(const ClientContext& context, const PromptTerms& terms) {
  if (terms.noise == PromptNoise::kNobody) return make_clear_prompt_client(context, terms);
  if (terms.trusts_server()) return make_trusting_prompt_client(context, terms);
  return make_noisy_prompt_client(context, terms);
}

}  // namespace sotto::methods
