// APFL: a client predicts with αv + (1 - α)w, w being the global model and v its own (Y. Deng et al., 2020).
//
// v follows the gradient of the mixture's loss, and so does α, once a round: α ← α - η⟨v - w, ∇f(αv + (1 - α)w)⟩, kept
// in [0, 1], the product being the mean over the round's steps. w is trained by DP-SGD and knows of neither.
#include "methods/dpsgd/dp_head.h"
#include "methods/dpsgd/noisy_training.h"
#include "methods/personal/entries.h"
#include "methods/personal/own_model_client.h"
#include "methods/personal/shared_descent.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <memory>
#include <utility>

namespace sotto::methods {
namespace {

constexpr const char* kMixture = "mixture";

struct ApflOptions {
  NoisyTraining training;
  double mixture = 0.5;  // α, or where it starts
  bool adapt = true;
};

const NoisyTraining& training_of(const RunSettings& spec) {
  return spec.options_of<ApflOptions>().training;
}

ApflOptions read_options(settings::Section& section) {
  ApflOptions options;
  options.mixture = section.number("mixture", options.mixture, settings::kFraction);
  options.adapt = section.boolean("adapt", options.adapt);
  const bool clipped = section.choice("descent", Descent::kClipped) == Descent::kClipped;
  options.training = clipped ? read_clip_options(section) : read_head_options(section);
  return options;
}

class ApflClient : public OwnModelClient {
 public:
  ApflClient(const ClientContext& context, std::unique_ptr<ClientMethod> sender)
      : OwnModelClient(context, std::move(sender)),
        options_(context.spec.options_of<ApflOptions>()),
        lr_(context.spec.federation.lr),
        mixture_(options_.mixture) {}

  void select(const Broadcast& broadcast, const privacy::PrivateState& state) override {
    OwnModelClient::select(broadcast, state);
    mix(trainer_.flat().values());
  }

 private:
  void mix(const at::Tensor& own) const { own.copy_(received().lerp(own, mixture_)); }

  LocalReport train_own(const data::Shard& shard, const StepContext& context) override {
    const at::Tensor values = trainer_.flat().values(), gradient = trainer_.flat().gradient();
    at::Tensor own;
    double slope = 0;
    int64_t steps = 0;
    const auto of_mixture = [&, loss = cross_entropy()](const data::Batch& batch) {
      own = values.clone();
      mix(values);
      return loss(batch);
    };
    const auto back_to_own = [&](const models::FlatParameters&) {
      values.copy_(own);
      slope += (own - received()).dot(gradient).item<double>();
      ++steps;
      gradient.mul_(mixture_);
    };
    const LocalReport report = trainer_.descend(records_, shard, context, of_mixture, back_to_own);
    if (options_.adapt && steps > 0 && !report.diverged) {
      mixture_ = std::clamp(mixture_ - lr_ * slope / static_cast<double>(steps), 0.0, 1.0);
    }
    return report;
  }

  void recall(const privacy::PrivateState& state) override {
    const at::Tensor kept = find_tensor(state.values(), std::string("own.") + kMixture);
    mixture_ = kept.defined() ? kept.item<double>() : options_.mixture;
  }

  NamedTensors memory() const override { return {{kMixture, at::scalar_tensor(mixture_, at::kDouble)}}; }

  const ApflOptions& options_;
  double lr_;
  double mixture_;
};

}  // namespace

MethodEntry apfl() {
  MethodEntry entry = noisy_training_within(
      "apfl", "a private global model, mixed with a model of each client's own that never leaves, without noise",
      "Deng et al., 2020", [](settings::Section& section) { return std::any(read_options(section)); }, training_of,
      PaperVariant::kNone);
  entry.family = "personal";
  entry.personal = [](const RunSettings&) { return true; };
  entry.make_client = [sender = entry.make_client](const ClientContext& context) -> std::unique_ptr<ClientMethod> {
    return std::make_unique<ApflClient>(context, sender(context));
  };
  return entry;
}

}  // namespace sotto::methods
