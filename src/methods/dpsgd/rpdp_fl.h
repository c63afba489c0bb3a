// rPDP-FL: J. Liu et al., "Cross-silo Federated Learning with Record-level Personalized Differential Privacy",
// CCS 2024: records have budgets of their own, and a record with a small one is sampled seldom.
//
// Everyone trains by DP-SGD with one noise multiplier z and Poisson batches. With S steps in all, a record of budget ε
// takes part in each with probability
//
//   q(ε) = max { q ≤ 1 : ε_PLD(S steps of rate q and multiplier z, 0.999 δ) ≤ ε }
//
// found by bisection on the certified accountant and rounded down; as printed, by a curve that is fitted to simulated
// costs (sampling_curve.h), of which nothing is certified but what the ledger then says. The
// noisy sum is divided by n Σ_k s_k q(ε_k), n the declared number of records and s_k the declared share of budget ε_k.
//
// A record's budget is public and the record's own: it moves with it, and a record that replaces another inherits it.
#pragma once

#include "methods/method.h"

namespace sotto::methods {

MethodEntry rpdp_fl();

}  // namespace sotto::methods
