// Is this record in its class's prototype? The nearer its feature lies to it, the likelier.
#pragma once

#include "attacks/attack.h"

namespace sotto::attacks {

AttackEntry prototype_membership();

}  // namespace sotto::attacks
