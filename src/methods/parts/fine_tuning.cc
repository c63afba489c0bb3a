#include "methods/parts/fine_tuning.h"

#include "base/error.h"
#include "methods/parts/local_trainer.h"

#include <ATen/ATen.h>

#include <memory>
#include <string>
#include <utility>

namespace sotto::methods {
namespace {

// A client's own model lies in its state under these names, beside what its method keeps there.
constexpr const char* kOwn = "tuned.";

bool is_asked_for(const RunSettings& spec) {
  return spec.federation.fine_tune > 0;
}

RunSettings tuning_settings(const RunSettings& spec) {
  RunSettings tuning = spec;
  tuning.federation.local_epochs = spec.federation.fine_tune;
  if (spec.federation.fine_tune_lr > 0) tuning.federation.lr = spec.federation.fine_tune_lr;
  return tuning;
}

class TunedClient : public ClientMethod {
 public:
  TunedClient(const ClientContext& context, std::unique_ptr<ClientMethod> method)
      : method_(std::move(method)),
        records_(context.records),
        settings_(tuning_settings(context.spec)),
        trainer_(PublicContext{settings_, context.facts}),
        own_(trainer_.model().state()) {}

  StepResult step(const Broadcast& broadcast, const data::Shard& shard, privacy::PrivateState& state,
                  const StepContext& context) override {
    const auto [earlier, methods_own] = parted(state);
    privacy::PrivateState kept(clone(methods_own));
    StepResult result = method_->step(broadcast, shard, kept, context);
    if (result.report.diverged) return result;
    const NamedTensors tuned = is_due(context) ? tune(broadcast, shard, context, earlier) : earlier;
    NamedTensors all = clone(kept.values());
    for (const auto& [name, value] : tuned) all.push_back({kOwn + name, value});
    state = privacy::PrivateState(std::move(all));
    return result;
  }

  void select(const Broadcast& broadcast, const privacy::PrivateState& state) override {
    const auto [tuned, methods_own] = parted(state);
    is_tuned_ = !tuned.empty();
    if (is_tuned_) {
      copy_values(own_, tuned);
    } else {
      method_->select(broadcast, privacy::PrivateState(clone(methods_own)));
    }
  }

  at::Tensor predict(const at::Tensor& x) override { return is_tuned_ ? trainer_.predict(x) : method_->predict(x); }
  at::Tensor features(const at::Tensor& x) override { return is_tuned_ ? trainer_.features(x) : method_->features(x); }
  NamedTensors selected_weights() const override {
    return is_tuned_ ? trainer_.model().state() : method_->selected_weights();
  }

 private:
  // What was tuned, without its prefix, and the rest.
  static std::pair<NamedTensors, NamedTensors> parted(const privacy::PrivateState& state) {
    std::pair<NamedTensors, NamedTensors> parts;
    for (const auto& [name, value] : state.values()) {
      if (name.starts_with(kOwn)) {
        parts.first.push_back({name.substr(std::string(kOwn).size()), value});
      } else {
        parts.second.push_back({name, value});
      }
    }
    return parts;
  }

  bool is_due(const StepContext& context) const {
    return context.release.round % settings_.federation.eval_every == 0 ||
           context.participation == context.own.participations;
  }

  // An earlier model where this training diverged.
  NamedTensors tune(const Broadcast& broadcast, const data::Shard& shard, const StepContext& context,
                    const NamedTensors& earlier) {
    method_->select(broadcast, {});
    const NamedTensors global = method_->selected_weights();
    const at::NoGradGuard no_grad;
    for (auto& [name, value] : own_) value.copy_(find_tensor(global, name));
    StepContext apart = context;  // its batches are not those of the method
    apart.seed = RandomStream(context.seed, "fine-tuning")();
    const at::AutoGradMode with_gradients(true);
    const LocalReport report = trainer_.train(records_, shard, apart);
    return report.diverged ? earlier : clone(own_);
  }

  std::unique_ptr<ClientMethod> method_;
  const data::Records& records_;
  RunSettings settings_;
  LocalTrainer trainer_;
  NamedTensors own_;  // views of the trainer's model
  bool is_tuned_ = false;
};

}  // namespace

MethodEntry with_fine_tuning(MethodEntry entry) {
  const auto require_global_model = [name = entry.name, uses_model = entry.uses_model,
                                     global = entry.global](const RunSettings& spec) {
    if (!is_asked_for(spec) || (uses_model && global(spec))) return;
    fail_user("federation.fine_tune: '{}' has no global model that a client could tune; leave it out", name);
  };
  entry.plan = [require_global_model, plan = std::move(entry.plan)](const PublicContext& context,
                                                                    const ClientFacts& client) {
    require_global_model(context.spec);
    return plan(context, client);
  };
  entry.personal = [personal = std::move(entry.personal)](const RunSettings& spec) {
    return is_asked_for(spec) || personal(spec);
  };
  if (entry.personal_is_noisy) {
    entry.personal_is_noisy = [noisy = std::move(entry.personal_is_noisy)](const RunSettings& spec) {
      return !is_asked_for(spec) && noisy(spec);
    };
  }
  entry.make_client = [require_global_model, make = std::move(entry.make_client)](
                          const ClientContext& context) -> std::unique_ptr<ClientMethod> {
    require_global_model(context.spec);
    auto method = make(context);
    if (!is_asked_for(context.spec)) return method;
    return std::make_unique<TunedClient>(context, std::move(method));
  };
  return entry;
}

}  // namespace sotto::methods
