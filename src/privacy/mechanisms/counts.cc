#include "privacy/mechanisms/counts.h"

#include "base/error.h"
#include "privacy/access.h"
#include "privacy/noise/discrete.h"

#include <ATen/ATen.h>

#include <nlohmann/json.hpp>

#include <cmath>

namespace sotto::privacy {

DiscreteGaussian::DiscreteGaussian(Group group, double noise_multiplier)
    : group_(std::move(group)), stddev_(noise_multiplier * group_.sensitivity) {
  if (!(noise_multiplier > 0) || !std::isfinite(noise_multiplier)) {
    fail_user("the noise multiplier is {}; it must be a positive number", noise_multiplier);
  }
}

Event DiscreteGaussian::event(const Neighbours& neighbours) const {
  return {.mechanism = kDiscreteGaussianMechanism,
          .noise_scale = stddev_,
          .sensitivity = group_.sensitivity,
          .neighbours = neighbours,
          .parameters = nlohmann::json{{"coordinates", group_.coordinates}}.dump()};
}

Release DiscreteGaussian::randomise(Bounded&& counts, Receipt receipt, NoiseSource& source) const {
  SOTTO_INVARIANT(counts.norm() == Norm::kL2 && counts.groups() == std::vector<Group>{group_});
  SOTTO_INVARIANT(receipt.sensitivity() == group_.sensitivity && receipt.noise_scale() == stddev_);
  NamedTensors& values = Access::values(counts);
  for (auto& [name, value] : values) {
    value = (value.is_floating_point() ? value.round() : value).to(at::kLong).contiguous();
    if (stddev_ == 0) continue;
    at::Tensor noise = at::empty_like(value);
    discrete_gaussian({noise.data_ptr<int64_t>(), static_cast<size_t>(noise.numel())}, stddev_, source);
    value = value + noise;
  }
  return Access::release(std::move(values), std::move(receipt));
}

}  // namespace sotto::privacy
