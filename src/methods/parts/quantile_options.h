// The keys of methods whose clipping bound follows a quantile.
#pragma once

#include "settings/section.h"
#include "privacy/mechanisms/quantile.h"

namespace sotto::methods {

// Keys quantile, quantile_lr, quantile_noise.
privacy::QuantileOptions read_quantile_options(settings::Section& section);

}  // namespace sotto::methods
