#include "methods/fedavg.h"

#include "methods/parts/averaging.h"
#include "methods/parts/trainer_client.h"

#include <ATen/ATen.h>

namespace sotto::methods {
namespace {

constexpr const char* kWhat = "model";
constexpr const char* kWhy = "non-private method: model weights and record counts are sent without noise";

privacy::Channel averaging_channel(const ClientFacts& client) {
  return privacy::Channel::in_the_clear(kWhat, kWhy).times(client.participations, "once per participation");
}

class AveragingClient : public TrainerClient {
 public:
  AveragingClient(const ClientContext& context, AnchoredTerm term) : TrainerClient(context), term_(std::move(term)) {}

  StepResult step(const Broadcast& broadcast, const data::Shard& shard, privacy::PrivateState& state,
                  const StepContext& context) override {
    select(broadcast, state);
    LocalTrainer::GradientTerm extra;
    if (term_) {
      anchor_ = trainer_.flat().shared().clone();
      extra = [this](const models::FlatParameters& parameters) { term_(parameters, anchor_); };
    }
    StepResult result;
    result.report = trainer_.train(records_, shard, context, extra);
    if (result.report.diverged) return result;
    keep_personal(state);
    result.upload = averaging_channel(context.own).release_clear(context.release, [&] {
      NamedTensors values = clone(trainer_.shared());
      values.push_back(declared_weight(static_cast<double>(shard.size())));
      return privacy::Contribution(std::move(values));
    });
    return result;
  }

 private:
  AnchoredTerm term_;
  at::Tensor anchor_;
};

}  // namespace

std::unique_ptr<ClientMethod> make_averaging_client(const ClientContext& context, AnchoredTerm term) {
  return std::make_unique<AveragingClient>(context, std::move(term));
}

bool has_personal_part(const RunSettings& spec) {
  return !spec.model.personal.empty();
}

ReleasePlan averaging_plan(const PublicContext&, const ClientFacts& client) {
  return {averaging_channel(client)};
}

privacy::UploadShape averaging_upload(const PublicContext& context, const Broadcast&) {
  return model_shape(context);
}

MethodEntry fedavg() {
  return {.name = "fedavg",
          .what = "weighted averaging of locally trained models; not private",
          .citation = "McMahan et al., AISTATS 2017",
          .family = "averaging",
          .read_options = [](settings::Section&) { return std::any(); },
          .plan = averaging_plan,
          .personal = has_personal_part,
          .global = [](const RunSettings& spec) { return !has_personal_part(spec); },
          .make_client = [](const ClientContext& context) { return make_averaging_client(context); },
          .make_server = make_averaging_server,
          .upload_shape = averaging_upload};
}

}  // namespace sotto::methods
