// The keys of methods whose clipping bound follows a quantile.
#pragma once

#include "privacy/mechanisms/quantile.h"
#include "settings/section.h"

namespace sotto::methods {

// Keys quantile, quantile_lr, quantile_noise.
privacy::QuantileOptions read_quantile_options(settings::Section& section);

}  // namespace sotto::methods
