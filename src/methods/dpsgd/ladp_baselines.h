// What LaDP-FL is compared with: one noise for all layers, in the same release form and at the same price.
//
// Sound, with x from 0 to 1 over a client's participations:
//   full-dp              z constant
//   time-varying-dp      z ∝ decay^x: a geometric series
//   dpa-ldp              the same with a slower decay; or 1/z² ∝ x^growth where growth is given
//   sensitive-dp-style   C ← C·exp(-η(b - quantile)) after every step, b the noisy share of norms below C
//   adap-ldp             z constant; C of a round is a noisy quantile of the last cohort's norms
//
// As LaDP-FL runs them, the trained model gets noise of √(2 ln(1.25/δ))·2ηE·G_c/ε: full-dp and adap-ldp as it stands
// ("static noise", "equivalent noise mechanisms"), the two decaying ones times decay^x. How sensitive-dp estimates its
// sensitivity is not printed, hence "-style" and no `paper` variant; nor is what adap-ldp adapts.
#pragma once

#include "methods/method.h"

namespace sotto::methods {

MethodEntry full_dp();
MethodEntry time_varying_dp();
MethodEntry dpa_ldp();
MethodEntry sensitive_dp_style();
MethodEntry adap_ldp();

}  // namespace sotto::methods
