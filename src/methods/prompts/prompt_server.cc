#include "methods/prompts/prompt_server.h"

#include "base/error.h"
#include "methods/parts/averaging.h"
#include "methods/prompts/prompt_gradients.h"

#include <ATen/ATen.h>

#include <optional>

namespace sotto::methods {
namespace {

class TrustedPromptServer : public ServerMethod {
 public:
  TrustedPromptServer(const PublicContext& context, const PromptTerms& terms, std::unique_ptr<const PromptRows> rows,
                      const PromptLearner& learner)
      : rows_(std::move(rows)),
        everyone_(terms.everyone),
        epsilon_(context.spec.privacy->least_budget()),
        participations_(context.facts.most_participations),
        global_(first_global_prompt(terms.options, learner, context.spec.seed)),
        mechanism_(rows_->server_mechanism(learner)),
        step_(terms.global_lr / rows_->server_divisor()),
        sum_(named_alone(prompt_names::kGlobalGradient, global_), mechanism_.groups()) {}

  Broadcast open() override { return {0, global_values(global_)}; }

  void accept(const privacy::Upload& upload) override {
    SOTTO_INVARIANT(upload.trusted() != nullptr);
    sum_.add(*upload.trusted());
  }

  Broadcast aggregate(const RoundContext& context) override {
    const privacy::Channel channel = rows_->server_channel(mechanism_, epsilon_, participations_);
    const auto sum = [&] { return sum_.take(); };
    const std::optional<privacy::Release> release =
        everyone_ ? channel.release(context.release, sum) : channel.release_for(context.cohort, context.release, sum);
    if (release) global_.sub_(release->values().front().value.view_as(global_), step_);
    return {context.round(), global_values(global_)};
  }

  void restore(const Broadcast& last, const NamedTensors&) override {
    global_.copy_(find_tensor(last.values, prompt_names::kGlobal));
  }

 private:
  std::unique_ptr<const PromptRows> rows_;
  bool everyone_;
  double epsilon_;
  int64_t participations_;
  at::Tensor global_;
  privacy::GroupwiseGaussian mechanism_;
  double step_;
  privacy::BoundedSum sum_;
};

}  // namespace

std::unique_ptr<ServerMethod> make_prompt_server(const PublicContext& context, const PromptTerms& terms) {
  if (!terms.trusts_server()) {
    return make_averaging_server_from(
        global_values(first_global_prompt(terms.options, learner_of(context, terms), context.spec.seed)));
  }
  privacy::TrustedServer::declared_by(context.spec.privacy, context.spec.method);
  auto rows = make_prompt_rows(context, terms);
  return std::make_unique<TrustedPromptServer>(context, terms, std::move(rows), learner_of(context, terms));
}

privacy::UploadShape prompt_upload_shape(const PublicContext& context, const PromptTerms& terms,
                                         const Broadcast& broadcast) {
  const std::vector<int64_t> sizes = find_tensor(broadcast.values, prompt_names::kGlobal).sizes().vec();
  if (!terms.trusts_server()) return {.tensors = {{.name = prompt_names::kGlobal, .sizes = sizes}}};
  const auto mechanism = make_prompt_rows(context, terms)->server_mechanism(learner_of(context, terms));
  return {.tensors = {{.name = prompt_names::kGlobalGradient, .sizes = sizes, .dtype = at::kDouble}},
          .trusted = privacy::TrustedBounds{.groups = mechanism.groups()}};
}

}  // namespace sotto::methods
