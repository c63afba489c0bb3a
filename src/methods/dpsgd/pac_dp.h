// PAC-DP: every client's clipping bound follows from its budget (H. Zhou et al., "Personalized Adaptive Clipping").
//
// C = F(ε)·λ(t): F is a curve fitted beforehand on public data (`sotto fit`), λ a schedule that starts at 1 and falls
// along a cosine. Neither depends on a client's records, so the bound costs nothing.
#pragma once

#include "methods/method.h"

namespace sotto::methods {

// λ in round `round` (from 1) of `rounds`: 1 until ⌊plateau·rounds⌋ rounds have passed, then down towards `least`. With
// a plateau of 1 there is no schedule.
double clip_schedule(int64_t round, int64_t rounds, double plateau, double least);

MethodEntry pac_dp();

}  // namespace sotto::methods
