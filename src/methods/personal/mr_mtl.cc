// MR-MTL: clients' models are their own, held near their mean w̄ by λ (Z. Liu et al., NeurIPS 2022).
//
// A round is one proximal step and then noisy descent, in this order:
//
//   w ← w̄ + (w - w̄)/(1 + λ),   then DP-SGD from there, then w is sent.
//
// The pull is made of releases alone, so it stays outside the clipping and costs nothing; as the proximal step is
// solved, not followed, no λ is too large. λ counts in rounds: it is the paper's times step size and steps of a round.
// λ = 0 are clients alone; λ → ∞ is one model, and each round then is one of ldp-fedavg. A client predicts with the
// model it would go on from.
#include "methods/dpsgd/dp_head.h"
#include "methods/dpsgd/noisy_training.h"
#include "methods/personal/entries.h"
#include "methods/personal/shared_descent.h"

#include <ATen/ATen.h>

#include <memory>
#include <string>
#include <utility>

namespace sotto::methods {
namespace {

constexpr const char* kOwn = "own.";

struct MrMtlOptions {
  NoisyTraining training;
  double lambda = 1.0;

  double kept() const { return 1 / (1 + lambda); }
};

const NoisyTraining& training_of(const RunSettings& spec) {
  return spec.options_of<MrMtlOptions>().training;
}

MrMtlOptions read_options(settings::Section& section) {
  MrMtlOptions options;
  options.lambda = section.number("lambda", options.lambda, settings::kNonNegative);
  const bool clipped = section.choice("descent", Descent::kClipped) == Descent::kClipped;
  options.training = clipped ? read_clip_options(section) : read_head_steps(section, options.kept());
  return options;
}

class MeanRegularisedClient : public ClientMethod {
 public:
  MeanRegularisedClient(std::unique_ptr<ClientMethod> noisy, double kept) : noisy_(std::move(noisy)), kept_(kept) {}

  StepResult step(const Broadcast& broadcast, const data::Shard& shard, privacy::PrivateState& state,
                  const StepContext& context) override {
    const Broadcast start = pulled(broadcast, state);
    StepResult result = noisy_->step(start, shard, state, context);
    if (!result.upload) return result;
    NamedTensors kept;
    for (const auto& [name, value] : state.values()) {
      if (!name.starts_with(kOwn)) kept.push_back({name, value});
    }
    for (const auto& [name, value] : result.upload->values()) {
      if (find_tensor(broadcast.values, name).defined()) kept.push_back({kOwn + name, value.clone()});
    }
    state = privacy::PrivateState(std::move(kept));
    return result;
  }

  void select(const Broadcast& broadcast, const privacy::PrivateState& state) override {
    noisy_->select(pulled(broadcast, state), state);
  }

  at::Tensor predict(const at::Tensor& x) override { return noisy_->predict(x); }
  at::Tensor features(const at::Tensor& x) override { return noisy_->features(x); }
  NamedTensors selected_weights() const override { return noisy_->selected_weights(); }

 private:
  Broadcast pulled(const Broadcast& mean, const privacy::PrivateState& state) const {
    Broadcast start = mean;
    for (NamedTensor& tensor : start.values) {
      const at::Tensor own = find_tensor(state.values(), kOwn + tensor.name);
      if (own.defined()) tensor.value = tensor.value.lerp(own, kept_);
    }
    return start;
  }

  std::unique_ptr<ClientMethod> noisy_;
  double kept_;
};

}  // namespace

MethodEntry mr_mtl() {
  MethodEntry entry = noisy_training_within(
      "mr-mtl", "models of clients' own by DP-SGD, held near their mean; record-level privacy against the server",
      "Liu et al., NeurIPS 2022", [](settings::Section& section) { return std::any(read_options(section)); },
      training_of, PaperVariant::kNone);
  entry.family = "personal";
  entry.personal = [](const RunSettings&) { return true; };
  entry.make_client = [noisy = entry.make_client](const ClientContext& context) -> std::unique_ptr<ClientMethod> {
    return std::make_unique<MeanRegularisedClient>(noisy(context), context.spec.options_of<MrMtlOptions>().kept());
  };
  return entry;
}

}  // namespace sotto::methods
