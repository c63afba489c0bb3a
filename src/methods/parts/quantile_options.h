// The keys of methods whose clipping bound follows a quantile.
#pragma once

#include "privacy/mechanisms/quantile.h"
#include "settings/section.h"

#include <optional>

namespace sotto::methods {

// Keys quantile, quantile_lr, quantile_noise.
privacy::QuantileOptions read_quantile_options(settings::Section& section);

// The same and the key clipping, of methods that can do without: nothing where it is "fixed", which is the default, and
// then the other keys mean nothing.
std::optional<privacy::QuantileOptions> read_adaptive_clipping(settings::Section& section);

}  // namespace sotto::methods
