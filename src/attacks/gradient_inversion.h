// Gradient inversion: the records behind what a client uploaded in round 1, the only one whose starting model is known.
//
// Zhu et al., "Deep Leakage from Gradients", NeurIPS 2019; Geiping et al., "Inverting Gradients - How easy is it to
// break privacy in federated learning?", NeurIPS 2020.
#pragma once

#include "attacks/attack.h"

namespace sotto::attacks {

AttackEntry gradient_inversion();

}  // namespace sotto::attacks
