// The keys of methods whose clipping bound follows a quantile.
#pragma once

#include "config/section.h"
#include "privacy/mechanisms/quantile.h"

namespace sotto::methods {

// Keys quantile, quantile_lr, quantile_noise.
privacy::QuantileOptions read_quantile_options(config::Section& section);

}  // namespace sotto::methods
