// What LaDP-FL is compared with: one noise for all layers, in the same release form and at the same price.
//
// Full DP is printed. Of the others no formula is, hence "-style"; with x from 0 to 1 over a client's participations:
//   time-varying-dp-style   z ∝ decay^x
//   dpa-ldp-style           1/z² ∝ x^growth
//   sensitive-dp-style      C ← C·exp(-η(b - quantile)) after every step, b the noisy share of norms below C
//   adap-ldp-style          the same, and z ∝ decay^x
#pragma once

#include "methods/method.h"

namespace sotto::methods {

MethodEntry full_dp();
MethodEntry time_varying_dp_style();
MethodEntry dpa_ldp_style();
MethodEntry sensitive_dp_style();
MethodEntry adap_ldp_style();

}  // namespace sotto::methods
