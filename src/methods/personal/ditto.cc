// Ditto: a global model that is private, and a model of each client's own that stays near it (T. Li et al., ICML 2021).
//
//   v ← argmin f(v) + (λ/2)‖v - w‖²
//
// f is the client's loss, w the global model that it received. Every step of v is followed by the exact proximal step
// v ← w + (v - w)/(1 + ηλ), so that no λ is too large: 0 is training alone, ∞ the global model.
#include "methods/dpsgd/dp_head.h"
#include "methods/dpsgd/noisy_training.h"
#include "methods/personal/entries.h"
#include "methods/personal/own_model_client.h"
#include "methods/personal/shared_descent.h"

#include <ATen/ATen.h>

#include <memory>
#include <utility>

namespace sotto::methods {
namespace {

struct DittoOptions {
  NoisyTraining training;
  double lambda = 0.1;
};

const NoisyTraining& training_of(const RunSettings& spec) {
  return spec.options_of<DittoOptions>().training;
}

DittoOptions read_options(settings::Section& section) {
  DittoOptions options;
  options.lambda = section.number("lambda", options.lambda, settings::kNonNegative);
  const bool clipped = section.choice("descent", Descent::kClipped) == Descent::kClipped;
  options.training = clipped ? read_clip_options(section) : read_head_options(section);
  return options;
}

class DittoClient : public OwnModelClient {
 public:
  DittoClient(const ClientContext& context, std::unique_ptr<ClientMethod> sender)
      : OwnModelClient(context, std::move(sender)),
        kept_(1 / (1 + context.spec.federation.lr * context.spec.options_of<DittoOptions>().lambda)) {}

 private:
  LocalReport train_own(const data::Shard& shard, const StepContext& context) override {
    const at::Tensor own = trainer_.flat().values();
    return trainer_.descend(records_, shard, context, cross_entropy(), {},
                            [&] { own.copy_(received().lerp(own, kept_)); });
  }

  double kept_;
};

}  // namespace

MethodEntry ditto() {
  MethodEntry entry = noisy_training_within(
      "ditto", "a private global model, and near it a model of each client's own that never leaves, without noise",
      "Li et al., ICML 2021", [](settings::Section& section) { return std::any(read_options(section)); }, training_of,
      PaperVariant::kNone);
  entry.family = "personal";
  entry.personal = [](const RunSettings&) { return true; };
  entry.make_client = [sender = entry.make_client](const ClientContext& context) -> std::unique_ptr<ClientMethod> {
    return std::make_unique<DittoClient>(context, sender(context));
  };
  return entry;
}

}  // namespace sotto::methods
