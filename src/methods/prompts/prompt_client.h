// The client side of prompt learning. Clients differ in what becomes of a batch's gradients and in what they send.
#pragma once

#include "methods/method.h"
#include "methods/prompts/prompt_gradients.h"
#include "methods/prompts/record_evidence.h"

#include <memory>
#include <optional>

namespace sotto::methods {

class PromptClient : public ClientMethod {
 public:
  PromptClient(const ClientContext& context, const PromptTerms& terms)
      : context_(context), terms_(terms), learner_(learner_of(context, terms)), slots_(slots_of(context, terms)) {}

  StepResult step(const Broadcast& broadcast, const data::Shard& shard, privacy::PrivateState& state,
                  const StepContext& context) override;
  void select(const Broadcast& broadcast, const privacy::PrivateState& state) override;
  at::Tensor predict(const at::Tensor& x) override;
  // The images': prompts do not change them.
  at::Tensor features(const at::Tensor& x) override;
  NamedTensors selected_weights() const override;

 protected:
  struct Round {
    const data::Shard& shard;
    const StepContext& context;
    RandomStream start;
    double loss = 0;
    int64_t samples = 0;
    std::optional<double> noise_norm = {};
  };
  // Moves the learner's prompts; what the client sends of them.
  virtual std::optional<privacy::Upload> train(Round& round) = 0;

  // Starts a step with the records at these positions of the shard. Where anybody adds noise, what is found of a record
  // does not depend on the others.
  PromptLearner::Evidence look_at(const at::Tensor& positions, Round& round);
  // Ends it.
  void descend(NamedTensors gradients);

  const ClientContext& context() const { return context_; }
  // In a round; 0: one for every batch.
  int64_t most_steps() const { return terms_.options.steps; }
  const PromptLearner& learner() const { return learner_; }

 private:
  ClientContext context_;
  PromptTerms terms_;
  PromptLearner learner_;
  std::optional<privacy::FixedSlots> slots_;
  data::Batch batch_;
  at::Tensor text_;  // of the selected prompts, once they were asked for
};

// The client that a run's terms ask for.
std::unique_ptr<ClientMethod> make_prompt_client(const ClientContext& context, const PromptTerms& terms);

// Its forms.

// No noise: the global prompt is sent as it is.
std::unique_ptr<ClientMethod> make_clear_prompt_client(const ClientContext& context, const PromptTerms& terms);
// Noise in every step, for local and global prompt alike; the server sees releases alone.
std::unique_ptr<ClientMethod> make_noisy_prompt_client(const ClientContext& context, const PromptTerms& terms);
// The server is handed bounded gradients of the global prompt; only steps on the local one have noise.
std::unique_ptr<ClientMethod> make_trusting_prompt_client(const ClientContext& context, const PromptTerms& terms);

// How a global prompt is sent as it is.
privacy::Channel clear_prompt_channel(const ClientFacts& client);

}  // namespace sotto::methods
