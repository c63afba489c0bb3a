#include "privacy/dpsgd/noisy_steps.h"

#include "base/error.h"
#include "privacy/access.h"
#include "privacy/dpsgd/batches.h"

#include <ATen/ATen.h>

namespace sotto::privacy {

Event NoisySteps::event(const ReleaseContext& context, const std::string& what, const std::string& observer) const {
  Event event = mechanism_.event(context, plan_.neighbours, what, observer, plan_.touches(), plan_.steps());
  event.sampling_rate = plan_.sampling == Sampling::kPoisson ? plan_.rate : 1.0;
  return event;
}

Release NoisySteps::run(Receipt receipt, const at::Tensor& indices, const ReleaseContext& context,
                        const Gradient& gradient, const Update& update, const Result& result) const {
  const Event paid = event(context, "", "");
  SOTTO_INVARIANT(receipt.sensitivity() == paid.sensitivity && receipt.noise() == paid.noise);
  Batches batches(plan_, indices, context);
  NoiseSource noise = context.noise_source("noise");
  for (int64_t epoch = 0; epoch < plan_.epochs; ++epoch) {
    for (const at::Tensor& positions : batches.next_epoch()) {
      Bounded bounded = gradient(positions);
      mechanism_.perturb(bounded, noise);
      update(Access::values(bounded));
    }
  }
  NamedTensors values = result();
  for (const NamedTensor& value : plan_.declared) values.push_back(value);
  return Access::release(std::move(values), std::move(receipt));
}

}  // namespace sotto::privacy
