#include "privacy/dpsgd/noisy_steps.h"

#include "base/error.h"
#include "privacy/access.h"
#include "privacy/dpsgd/batches.h"

#include <ATen/ATen.h>

namespace sotto::privacy {

Channel NoisySteps::channel(std::string what, Observer observer) const {
  Channel channel = Channel::gaussian(std::move(what), observer, mechanism_, plan_.neighbours,
                                      {.touches = plan_.touches(), .draws = steps()});
  channel.sampled_at(plan_.sampling == Sampling::kPoisson ? plan_.rate : 1.0).allocated_to(plan_.allocation());
  return channel;
}

Release NoisySteps::run(const Channel& channel, const at::Tensor& indices, const ReleaseContext& context,
                        const Gradient& gradient, const Update& update, const Result& result) const {
  Receipt receipt = channel.pay(context);
  SOTTO_INVARIANT(mechanism_.is_paid_by(receipt));
  Batches batches(plan_, indices, receipt, context);
  NoiseSource noise = context.noise_source(receipt, "noise");
  int64_t taken = 0;
  for (int64_t epoch = 0; epoch < plan_.epochs; ++epoch) {
    for (const at::Tensor& positions : batches.next_epoch()) {
      if (most_ != 0 && ++taken > most_) break;
      Bounded bounded = gradient(positions);
      mechanism_.perturb(bounded, noise);
      NamedTensors& noisy = Access::values(bounded);
      for (NamedTensor& value : noisy) value.value = value.value.to(at::kFloat);
      update(noisy);
    }
  }
  NamedTensors values = result();
  channel.append_declared(values);
  return Access::release(std::move(values), std::move(receipt));
}

}  // namespace sotto::privacy
