// DP-FedAvg: client-level privacy by a trusted server.
//
// Clients send their clipped updates to the server, which adds Gaussian noise to their sum: whoever sees the model
// cannot tell whether a given client took part (B. McMahan et al., "Learning Differentially Private Recurrent Language
// Models", ICLR 2018). With adaptive clipping it also learns the bound, as a quantile of the updates' norms, from
// one noisy bit per client (G. Andrew et al., "Differentially Private Learning with Adaptive Clipping", NeurIPS 2021).
// With banded noise and cohorts in turn, rounds take back part of the noise of earlier ones (C. Choquette-Choo et al.,
// "(Amplified) Banded Matrix Factorization", NeurIPS 2023; privacy/mechanisms/banded.h).
#pragma once

#include "methods/method.h"

namespace sotto::methods {

MethodEntry dp_fedavg();

}  // namespace sotto::methods
