// The keys of methods whose clipping bound follows a quantile.
#pragma once

#include "methods/method.h"
#include "privacy/mechanisms/quantile.h"
#include "settings/section.h"

#include <optional>

namespace sotto::methods {

// Keys quantile, quantile_lr, quantile_noise.
privacy::QuantileOptions read_quantile_options(settings::Section& section);

// The same and the key clipping, of methods that can do without: nothing where it is "fixed", which is the default, and
// then the other keys mean nothing.
std::optional<privacy::QuantileOptions> read_adaptive_clipping(settings::Section& section);

// Broadcasts of such a method: those that the server opens with, in which a bound that travels is one that noise can have.
BroadcastShape with_learnt_bound(const PublicContext& context, BroadcastShape opening, const Broadcast& broadcast);

}  // namespace sotto::methods
