// Hijacking: an input whose feature is an uploaded prototype, by descent.
//
// After Mahendran and Vedaldi, "Understanding Deep Image Representations by Inverting Them", CVPR 2015.
#pragma once

#include "attacks/attack.h"

namespace sotto::attacks {

AttackEntry hijacking();

}  // namespace sotto::attacks
