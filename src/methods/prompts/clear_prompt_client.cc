#include "methods/prompts/prompt_client.h"

#include <ATen/ATen.h>

#include <algorithm>

namespace sotto::methods {
namespace {

class ClearPromptClient : public PromptClient {
 public:
  using PromptClient::PromptClient;

 protected:
  std::optional<privacy::Upload> train(Round& round) override {
    round.noise_norm = 0;
    RandomStream order = round.context.stream("batch-order");
    const FederationOptions& federation = context().spec.federation;
    const int64_t records = round.shard.size();
    int64_t steps = 0;
    for (int64_t epoch = 0; epoch < federation.local_epochs; ++epoch) {
      const at::Tensor shuffled = at::tensor(order.permutation(records), at::kLong);
      for (int64_t begin = 0; begin < records; begin += federation.batch) {
        if (most_steps() != 0 && ++steps > most_steps()) break;
        const int64_t count = std::min(federation.batch, records - begin);
        const auto evidence = look_at(shuffled.narrow(0, begin, count), round);
        descend(learner().pull_back(PromptLearner::sum_of(evidence) / static_cast<double>(count)));
      }
    }
    return clear_prompt_channel(round.context.own).release_clear(round.context.release, [&] {
      return privacy::Contribution(global_values(learner().global()));
    });
  }
};

}  // namespace

std::unique_ptr<ClientMethod> make_clear_prompt_client(const ClientContext& context, const PromptTerms& terms) {
  return std::make_unique<ClearPromptClient>(context, terms);
}

privacy::Channel clear_prompt_channel(const ClientFacts& client) {
  return privacy::Channel::in_the_clear(prompt_names::kPrompts, "prompts are sent as they are")
      .times(client.participations, "once per participation");
}

}  // namespace sotto::methods
