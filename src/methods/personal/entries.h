// Methods whose clients end with models of their own. What they send is trained by DP-SGD (methods/dpsgd), so that it is
// private against the server; what they keep is told apart by whether noise hides records in it.
#pragma once

#include "methods/method.h"

namespace sotto::methods {

// Models of their own, held near their mean; all are sent with noise.
MethodEntry mr_mtl();
// A global model as dp-head or ldp-fedavg makes it; beside it a model of the client's own, held near the global one and
// trained without noise.
MethodEntry ditto();
// The same, the client's own predictions being those of a mixture of the two.
MethodEntry apfl();
// A body that all share, under heads that stay: heads with noise as the body has.
MethodEntry fedper();
// The same; clients use heads that they fit to the body they are sent, without noise.
MethodEntry fedrep();

}  // namespace sotto::methods
