// Lower bounds on ε for Gaussian steps whose records were sampled or allocated at random.
//
// Counting says little of them: they leak in rare events. What is in doubt is their noise, not their kind, so that they
// are compared with mechanisms of their kind. With noise s times that of `steps`, no test has error rates below the
// trade-off curve of the worst pair, which certified δ(ε) of both directions (pld.h) bounds from below:
//
//   1 - FNR ≤ e^ε FPR + δ_with‖without(ε),   1 - FPR ≤ e^ε FNR + δ_without‖with(ε)   for every ε ≥ 0.
//
// So rates that are measured to lie below the curve exclude that noise, and all that is larger; ε at the least noise
// excluded is a lower bound for steps of this kind. What is seen may be post-processing of them: the bound is then of the
// steps, which the ledger charges for, not of what is seen. Of a mechanism that is only dominated by steps of this kind
// it bounds what can be proven by them, not its own ε. One that leaks more than its kind shows as one of less noise.
#pragma once

#include "audit/bounds.h"
#include "privacy/accounting/step.h"

#include <span>

namespace sotto::audit {

// Upper limits on the error rates of one test. 0 if they exclude nothing; steps must be Gaussian, and not empty.
double epsilon_by_family(std::span<const privacy::Steps> steps, const ErrorRates& limits, double delta);

}  // namespace sotto::audit
