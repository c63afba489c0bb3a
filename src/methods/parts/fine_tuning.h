// Personal models on top of a global one: every client trains the model that it was sent on its own records, and keeps
// the result.
//
// It is local work on something that is public already. Nothing more leaves the client, so that nothing more is
// charged; the personal model itself is fitted without noise and must stay where it is.
#pragma once

#include "methods/method.h"

namespace sotto::methods {

// `entry`, whose clients have models of their own if federation.fine_tune asks for them. A client tunes the model that
// a round began with, in rounds that are evaluated and in its last one. A method without a global model of [model] is
// then a UserError.
MethodEntry with_fine_tuning(MethodEntry entry);

}  // namespace sotto::methods
