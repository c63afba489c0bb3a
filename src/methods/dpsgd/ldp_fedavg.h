// LDP-FedAvg: record-level privacy against the server.
//
// Clients train with DP-SGD (M. Abadi et al., "Deep Learning with Differential Privacy", CCS 2016): every record's
// gradient is clipped, noise is added at the client, and the server averages models that are already private.
#pragma once

#include "methods/method.h"

namespace sotto::methods {

MethodEntry ldp_fedavg();

// The same under the names that PAC-DP is compared with: a fixed bound, and two that follow a median of norms. As
// printed, all of them have PAC-DP's accounting; `cgm-median` moves its bound by Andrew's update from a noisy share, and
// `aqc` takes Geyer's median of the last cohort's norms as it is, without noise.
MethodEntry fixed_threshold();
MethodEntry cgm_median();
MethodEntry aqc();

}  // namespace sotto::methods
