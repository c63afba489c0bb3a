// FedProx: FedAvg whose clients are held near the broadcast by (mu/2)·‖w - w_broadcast‖².
//
// T. Li et al., "Federated Optimization in Heterogeneous Networks", MLSys 2020. Not private.
#pragma once

#include "methods/method.h"

namespace sotto::methods {

MethodEntry fedprox();

}  // namespace sotto::methods
