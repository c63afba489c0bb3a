#include "base/error.h"
#include "methods/prompts/prompt_client.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <vector>

namespace sotto::methods {
namespace {

class TrustingPromptClient : public PromptClient {
 public:
  TrustingPromptClient(const ClientContext& context, const PromptTerms& terms, std::unique_ptr<const PromptRows> rows)
      : PromptClient(context, terms), rows_(std::move(rows)) {}

 protected:
  std::optional<privacy::Upload> train(Round& round) override {
    std::vector<at::Tensor> for_server;  // rows of [·, b, w]
    if (learner().has_local()) {
      train_local(round, for_server);
    } else {
      gather(round, for_server);
    }
    return gradient_channel(context().spec, round.context.own).hand_over(round.context.release, [&] {
      if (for_server.empty()) for_server.push_back(at::empty_like(learner().global()).unsqueeze(0).narrow(0, 0, 0));
      return rows_->bounded_global(at::cat(for_server));
    });
  }

 private:
  // The release is for those who will use the prompt: it stays here.
  void train_local(Round& round, std::vector<at::Tensor>& for_server) {
    const privacy::NoisySteps steps = rows_->steps(learner(), round.context.own);
    steps.run(
        rows_->steps_channel(steps, round.context.own), round.shard.train, round.context.release,
        [&](const at::Tensor& positions) {
          return rows_->bounded_rows(learner(), local_rows(positions, round, for_server));
        },
        [&](const NamedTensors& noisy) { descend(rows_->gradients(learner(), noisy, steps.plan())); },
        [&] { return global_values(learner().global()); });
  }

  // One prompt: nothing happens here that needs noise, and the prompt stays where it is. Order matters where not every
  // batch is looked at.
  void gather(Round& round, std::vector<at::Tensor>& for_server) {
    const int64_t records = round.shard.size(), batch = context().spec.federation.batch;
    at::Tensor order = at::arange(records, at::kLong);
    if (most_steps() != 0) {
      RandomStream stream = round.context.stream("batch-order");
      order = at::tensor(stream.permutation(records), at::kLong).narrow(0, 0, std::min(records, most_steps() * batch));
    }
    for (int64_t begin = 0; begin < order.size(0); begin += batch) {
      local_rows(order.narrow(0, begin, std::min(batch, order.size(0) - begin)), round, for_server);
    }
  }

  // A batch's rows without those of the global prompt, which are kept for the server.
  NamedTensors local_rows(const at::Tensor& positions, Round& round, std::vector<at::Tensor>& for_server) {
    NamedTensors rows = rows_->rows(learner(), look_at(positions, round));
    SOTTO_INVARIANT(rows.back().name == prompt_names::kGlobal);
    for_server.push_back(rows.back().value);
    rows.pop_back();
    return rows;
  }

  std::unique_ptr<const PromptRows> rows_;
};

}  // namespace

std::unique_ptr<ClientMethod> make_trusting_prompt_client(const ClientContext& context, const PromptTerms& terms) {
  return std::make_unique<TrustingPromptClient>(context, terms, make_prompt_rows(context, terms));
}

}  // namespace sotto::methods
