// Hijacking: an input whose feature is an uploaded prototype, by descent.
//
// VPDR attacks prototypes in this way, after Zhang et al. (MPFT), CVPR 2025.
#pragma once

#include "attacks/attack.h"

namespace sotto::attacks {

AttackEntry hijacking();

}  // namespace sotto::attacks
