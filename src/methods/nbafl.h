// NbAFL: noise before aggregation, at every client; record-level privacy against the server.
//
// K. Wei et al., "Federated Learning With Differential Privacy: Algorithms and Performance Analysis", IEEE TIFS 15,
// 2020. Clients train without noise; what they send is clipped as a whole and noised.
//
//   sound   the update is clipped to S. One record may turn all of it round, so Δ = 2S whatever the adjacency; the
//           noise is that of the client's budget over its participations.
//   paper   the weights are clipped to C, the noise is what the paper prints, and the server adds the paper's down-link
//           noise. The paper takes Δ = 2C/m, which holds for an average of m clipped vectors; local training is no such
//           average. The ledger charges 2C for the noise that is there and notes the claim beside it.
//
// A client whose training diverges sends the broadcast back: to stay silent would tell of its records.
#pragma once

#include "methods/method.h"

namespace sotto::methods {

MethodEntry nbafl();

// What the paper's noise is a function of. All of it is public.
struct PrintedNoise {
  double clip = 0;            // C
  double delta = 0;           // δ
  int64_t least_records = 0;  // m, of the smallest local dataset
  int64_t rounds = 0;         // T
  int64_t exposures = 0;      // L, how many of a client's uploads are seen
  int64_t cohort = 0;         // N

  // σ_U = cL·(2C/m)/ε with c = √(2 ln(1.25/δ)).
  double uplink_stddev(double epsilon) const;
  // σ_D = 2cC·√(T² - L²N)/(mNε) if T > L√N, otherwise 0. It is drawn by the server for what is already released, and
  // so has no row in the ledger.
  double downlink_stddev(double epsilon) const;
};

}  // namespace sotto::methods
