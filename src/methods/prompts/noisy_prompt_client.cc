#include "methods/prompts/prompt_client.h"

namespace sotto::methods {
namespace {

class NoisyPromptClient : public PromptClient {
 public:
  NoisyPromptClient(const ClientContext& context, const PromptTerms& terms,
                    std::unique_ptr<const PromptGradients> gradients)
      : PromptClient(context, terms), gradients_(std::move(gradients)) {}

 protected:
  std::optional<privacy::Upload> train(Round& round) override {
    const privacy::NoisySteps steps = gradients_->steps(learner(), round.context.own);
    return steps.run(
        gradients_->steps_channel(steps, round.context.own), round.shard.train, round.context.release,
        [&](const at::Tensor& positions) { return gradients_->bounded(learner(), look_at(positions, round)); },
        [&](const NamedTensors& noisy) { descend(gradients_->gradients(learner(), noisy, steps.plan())); },
        [&] { return global_values(learner().global()); });
  }

 private:
  std::unique_ptr<const PromptGradients> gradients_;
};

}  // namespace

std::unique_ptr<ClientMethod> make_noisy_prompt_client(const ClientContext& context, const PromptTerms& terms) {
  return std::make_unique<NoisyPromptClient>(context, terms, make_prompt_gradients(context, terms));
}

}  // namespace sotto::methods
