#include "methods/parts/quantile_options.h"

namespace sotto::methods {

privacy::QuantileOptions read_quantile_options(settings::Section& section) {
  privacy::QuantileOptions o;
  const settings::Range share{.low = 0, .high = 1, .low_excluded = true, .high_excluded = true};
  o.quantile = section.number("quantile", o.quantile, share);
  o.learning_rate = section.number("quantile_lr", o.learning_rate, settings::kPositive);
  o.relative_noise = section.number("quantile_noise", o.relative_noise, settings::kPositive);
  return o;
}

std::optional<privacy::QuantileOptions> read_adaptive_clipping(settings::Section& section) {
  const bool adaptive = section.one_of("clipping", "fixed", {"fixed", "adaptive"}) == "adaptive";
  const privacy::QuantileOptions o = read_quantile_options(section), fallback;
  const char* where = "without clipping = \"adaptive\"";
  section.only_if(adaptive, "quantile", o.quantile == fallback.quantile, where);
  section.only_if(adaptive, "quantile_lr", o.learning_rate == fallback.learning_rate, where);
  section.only_if(adaptive, "quantile_noise", o.relative_noise == fallback.relative_noise, where);
  return adaptive ? std::optional(o) : std::nullopt;
}

BroadcastShape with_learnt_bound(const PublicContext&, BroadcastShape opening, const Broadcast&) {
  for (privacy::TensorShape& tensor : opening) {
    if (tensor.name != privacy::kLearntBound) continue;
    tensor.least = 1e-12;
    tensor.most = 1e12;
  }
  return opening;
}

}  // namespace sotto::methods
