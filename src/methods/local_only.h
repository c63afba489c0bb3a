// Local-only training: every client trains its own model and sends nothing. The floor that a federation must beat, at ε
// = 0.
#pragma once

#include "methods/method.h"

namespace sotto::methods {

MethodEntry local_only();

}  // namespace sotto::methods
