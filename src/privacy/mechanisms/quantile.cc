#include "privacy/mechanisms/quantile.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

namespace sotto::privacy {
namespace {

constexpr const char* kBelow = "below";
constexpr double kHalf = 0.5;
constexpr double kLargestShare = 0.1;

}  // namespace

QuantileOptions read_quantile_options(config::Section& section) {
  QuantileOptions o;
  const config::Range share{.low = 0, .high = 1, .low_excluded = true, .high_excluded = true};
  o.quantile = section.number("quantile", o.quantile, share);
  o.learning_rate = section.number("quantile_lr", o.learning_rate, config::kPositive);
  o.relative_noise = section.number("quantile_noise", o.relative_noise, config::kPositive);
  return o;
}

NamedTensor below(double norm, double bound) {
  return {kBelow, at::full({1}, norm <= bound ? kHalf : -kHalf)};
}

ClipRule below_rule() {
  return {kBelow, 1, kHalf};
}

double below_weight(const QuantileOptions& options, double noise_multiplier, double count) {
  const double wanted_multiplier = options.relative_noise * count / kHalf;
  return std::min(kLargestShare, std::pow(noise_multiplier / wanted_multiplier, 2));
}

double next_bound(const QuantileOptions& options, double bound, const at::Tensor& noisy_sum, double count) {
  const double share = std::clamp(noisy_sum.item<double>() / count + kHalf, 0.0, 1.0);
  return bound * std::exp(-options.learning_rate * (share - options.quantile));
}

}  // namespace sotto::privacy
