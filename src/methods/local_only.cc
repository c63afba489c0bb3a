#include "methods/local_only.h"

#include "methods/parts/local_trainer.h"

namespace sotto::methods {
namespace {

class LocalClient : public ClientMethod {
 public:
  explicit LocalClient(const ClientContext& context)
      : trainer_(context), records_(context.records), weights_(trainer_.shared()) {
    for (const auto& parameter : trainer_.personal()) weights_.push_back(parameter);
    initial_ = clone(weights_);
  }

  StepResult step(const Broadcast& broadcast, const data::Shard& shard, privacy::PrivateState& state,
                  const StepContext& context) override {
    select(broadcast, state);
    StepResult result;
    result.report = trainer_.train(records_, shard, context);
    if (!result.report.diverged) state = privacy::PrivateState(clone(weights_));
    return result;
  }

  void select(const Broadcast&, const privacy::PrivateState& state) override {
    copy_values(weights_, state.empty() ? initial_ : state.values());
  }

  at::Tensor predict(const at::Tensor& x) override { return trainer_.predict(x); }
  at::Tensor features(const at::Tensor& x) override { return trainer_.features(x); }
  NamedTensors selected_weights() const override { return trainer_.model().state(); }

 private:
  LocalTrainer trainer_;
  const data::Records& records_;
  NamedTensors weights_;
  NamedTensors initial_;
};

class SilentServer : public ServerMethod {
 public:
  Broadcast open() override { return current_; }
  void accept(const privacy::Upload&) override {}
  Broadcast aggregate(const RoundContext& context) override {
    current_.round = context.round();
    return current_;
  }
  void restore(const Broadcast& last, const NamedTensors&) override { current_ = last; }

 private:
  Broadcast current_;
};

}  // namespace

MethodEntry local_only() {
  return {.name = "local-only",
          .what = "each client trains alone; nothing is released",
          .citation = "",
          .family = "averaging",
          .read_options = [](settings::Section&) { return std::any(); },
          .plan = [](const PublicContext&, const ClientFacts&) { return ReleasePlan{}; },
          .personal = [](const RunSettings&) { return true; },
          .global = [](const RunSettings&) { return false; },
          .make_client = [](const ClientContext& context) { return std::make_unique<LocalClient>(context); },
          .make_server = [](const PublicContext&) { return std::make_unique<SilentServer>(); },
          .upload_shape = [](const PublicContext&, const Broadcast&) { return privacy::UploadShape{}; }};
}

}  // namespace sotto::methods
