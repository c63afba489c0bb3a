#include "methods/fedavg.h"

#include "methods/averaging.h"
#include "methods/trainer_client.h"

#include <ATen/ATen.h>

namespace sotto::methods {
namespace {

constexpr const char* kWhat = "model";
constexpr const char* kWhy = "non-private method: model weights and record counts are sent in the clear";

class AveragingClient : public TrainerClient {
 public:
  AveragingClient(const MethodContext& context, AnchoredTerm term) : TrainerClient(context), term_(std::move(term)) {}

  StepResult step(const Broadcast& broadcast, const data::Shard& shard, privacy::PrivateState& state,
                  const StepContext& context) override {
    select(broadcast, state);
    LocalTrainer::GradientTerm extra;
    if (term_) {
      anchor_ = trainer_.flat().shared().clone();
      extra = [this](const models::FlatParameters& parameters) { term_(parameters, anchor_); };
    }
    StepResult result;
    result.report = trainer_.train(shard, context, extra);
    if (result.report.diverged) return result;
    keep_personal(state);
    NamedTensors values = clone(trainer_.shared());
    values.push_back({kRecordsName, at::scalar_tensor(static_cast<double>(shard.size()), at::kDouble)});
    result.upload = privacy::in_the_clear(privacy::Contribution(std::move(values)), context.release, kWhat, kWhy);
    return result;
  }

 private:
  AnchoredTerm term_;
  at::Tensor anchor_;
};

}  // namespace

std::unique_ptr<ClientMethod> make_averaging_client(const MethodContext& context, AnchoredTerm term) {
  return std::make_unique<AveragingClient>(context, std::move(term));
}

bool has_personal_part(const config::RunSpec& spec) {
  return !spec.model.personal.empty();
}

ReleasePlan averaging_plan(const MethodContext&, const ClientFacts& client) {
  return {{.event = {.observer = "server", .what = kWhat, .mechanism = privacy::kClearMechanism, .why_unproven = kWhy},
           .how_often = "once per participation",
           .times = client.participations}};
}

MethodEntry fedavg() {
  return {.name = "fedavg",
          .what = "weighted averaging of locally trained models; not private",
          .citation = "McMahan et al., AISTATS 2017",
          .read_options = [](config::Section&) {},
          .plan = averaging_plan,
          .personal = has_personal_part,
          .global = [](const config::RunSpec& spec) { return !has_personal_part(spec); },
          .make_client = [](const MethodContext& context) { return make_averaging_client(context); },
          .make_server = make_averaging_server};
}

}  // namespace sotto::methods
