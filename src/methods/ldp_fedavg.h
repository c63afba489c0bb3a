// LDP-FedAvg: record-level privacy against the server.
//
// Clients train with DP-SGD (M. Abadi et al., "Deep Learning with Differential Privacy", CCS 2016): every record's
// gradient is clipped, noise is added at the client, and the server averages models that are already private.
#pragma once

#include "methods/method.h"

namespace sotto::methods {

MethodEntry ldp_fedavg();

}  // namespace sotto::methods
