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

}  // namespace sotto::methods
