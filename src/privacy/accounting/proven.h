// What the ledger claims: closed forms where all steps are unsampled Gaussians (microseconds), the certified
// privacy-loss distribution otherwise (answers are remembered), and with steps of bounded range the smaller of that and
// Rényi divergences. Always rounded up. Thread-safe.
#pragma once

#include "privacy/accounting/step.h"

#include <span>

namespace sotto::privacy {

// The smallest ε that is proven at `delta`; ∞ if there is none, 0 if nothing was released.
double proven_epsilon(std::span<const Steps> steps, double delta);

// An upper bound of δ at `epsilon`.
double proven_delta(std::span<const Steps> steps, double epsilon);

}  // namespace sotto::privacy
